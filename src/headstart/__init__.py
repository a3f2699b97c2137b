"""Learn one starting point from many small related tasks, and give every new task that head start.

The system of "Learning-to-Learn Stochastic Gradient Descent with Biased Regularization"
(Denevi, Ciliberto, Grazzi, Pontil, ICML 2019).

>>> import headstart
>>> tasks = headstart.TaskSet.from_list([([[1.0, 0.0], [0.0, 1.0]], [4.0, 2.0])] * 100)
>>> headstart.learn_bias(tasks, reg=0.1, step=1.0).last
array([4., 2.])
"""

import lazy_loader

__version__ = "0.2.0"

# The stub beside this file names what is public and where it stands. A name is imported when it
# is first asked for: who wants one algorithm, or the help of a command, waits for no other.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]
