"""How good predictions are after few rows of a new task, and whether sharing helps at all."""

from headstart.evaluation.curve import FewShotCurve
from headstart.evaluation.few_shot import few_shot_curve, few_shot_score

__all__ = ["FewShotCurve", "few_shot_curve", "few_shot_score"]
