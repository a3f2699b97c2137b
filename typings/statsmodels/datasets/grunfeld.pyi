import pandas as pd

class Dataset:
    data: pd.DataFrame

def load_pandas() -> Dataset: ...
