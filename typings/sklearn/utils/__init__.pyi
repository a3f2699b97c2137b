class ClassifierTags:
    poor_score: bool
    multi_class: bool

class RegressorTags:
    poor_score: bool

class InputTags:
    sparse: bool

class Tags:
    input_tags: InputTags
    classifier_tags: ClassifierTags
    regressor_tags: RegressorTags
