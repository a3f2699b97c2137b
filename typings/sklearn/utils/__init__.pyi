class ClassifierTags:
    poor_score: bool
    multi_class: bool

class RegressorTags:
    poor_score: bool

class Tags:
    classifier_tags: ClassifierTags
    regressor_tags: RegressorTags
