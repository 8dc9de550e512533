"""Allowlist of a skops file's types, and of values of some parameters: tables to review. Pure.

Listed is what scikit-learn predicts with and whose code reads no file, runs no code out of the model and starts no
process. Left out on purpose: what has no `predict` or `transform` for new rows (t-SNE, MDS, DBSCAN, ...), takes dicts
or images (DictVectorizer, PatchExtractor), or is linked by nodes that cannot be checked here (Birch, BisectingKMeans).
The operator may trust more by name, at their own risk.
"""

from collections.abc import Callable, Mapping
from typing import Any

_ESTIMATORS = {
    "sklearn.calibration": "CalibratedClassifierCV _CalibratedClassifier _SigmoidCalibration",
    "sklearn.cluster._affinity_propagation": "AffinityPropagation",
    "sklearn.cluster._agglomerative": "FeatureAgglomeration",
    "sklearn.cluster._kmeans": "KMeans MiniBatchKMeans",
    "sklearn.cluster._mean_shift": "MeanShift",
    "sklearn.compose._column_transformer": "ColumnTransformer",
    "sklearn.compose._target": "TransformedTargetRegressor",
    "sklearn.covariance._elliptic_envelope": "EllipticEnvelope",
    "sklearn.covariance._empirical_covariance": "EmpiricalCovariance",
    "sklearn.covariance._robust_covariance": "MinCovDet",
    "sklearn.covariance._shrunk_covariance": "LedoitWolf OAS ShrunkCovariance",
    "sklearn.cross_decomposition._pls": "CCA PLSCanonical PLSRegression PLSSVD",
    "sklearn.decomposition._dict_learning": "DictionaryLearning MiniBatchDictionaryLearning SparseCoder",
    "sklearn.decomposition._factor_analysis": "FactorAnalysis",
    "sklearn.decomposition._fastica": "FastICA",
    "sklearn.decomposition._incremental_pca": "IncrementalPCA",
    "sklearn.decomposition._kernel_pca": "KernelPCA",
    "sklearn.decomposition._lda": "LatentDirichletAllocation",
    "sklearn.decomposition._nmf": "MiniBatchNMF NMF",
    "sklearn.decomposition._pca": "PCA",
    "sklearn.decomposition._sparse_pca": "MiniBatchSparsePCA SparsePCA",
    "sklearn.decomposition._truncated_svd": "TruncatedSVD",
    "sklearn.discriminant_analysis": "LinearDiscriminantAnalysis QuadraticDiscriminantAnalysis",
    "sklearn.dummy": "DummyClassifier DummyRegressor",
    "sklearn.ensemble._bagging": "BaggingClassifier BaggingRegressor",
    "sklearn.ensemble._forest": "ExtraTreesClassifier ExtraTreesRegressor RandomForestClassifier "
    "RandomForestRegressor RandomTreesEmbedding",
    "sklearn.ensemble._gb": "GradientBoostingClassifier GradientBoostingRegressor",
    "sklearn.ensemble._hist_gradient_boosting.gradient_boosting": "HistGradientBoostingClassifier "
    "HistGradientBoostingRegressor",
    "sklearn.ensemble._hist_gradient_boosting.binning": "_BinMapper",
    "sklearn.ensemble._hist_gradient_boosting.predictor": "TreePredictor",
    "sklearn.ensemble._iforest": "IsolationForest",
    "sklearn.ensemble._stacking": "StackingClassifier StackingRegressor",
    "sklearn.ensemble._voting": "VotingClassifier VotingRegressor",
    "sklearn.ensemble._weight_boosting": "AdaBoostClassifier AdaBoostRegressor",
    "sklearn.feature_extraction._hash": "FeatureHasher",
    "sklearn.feature_extraction.text": "CountVectorizer HashingVectorizer TfidfTransformer TfidfVectorizer",
    "sklearn.feature_selection._from_model": "SelectFromModel",
    "sklearn.feature_selection._rfe": "RFE RFECV",
    "sklearn.feature_selection._sequential": "SequentialFeatureSelector",
    "sklearn.feature_selection._univariate_selection": "GenericUnivariateSelect SelectFdr SelectFpr SelectFwe "
    "SelectKBest SelectPercentile",
    "sklearn.feature_selection._variance_threshold": "VarianceThreshold",
    "sklearn.frozen._frozen": "FrozenEstimator",
    "sklearn.gaussian_process._gpc": "GaussianProcessClassifier _BinaryGaussianProcessClassifierLaplace",
    "sklearn.gaussian_process._gpr": "GaussianProcessRegressor",
    "sklearn.gaussian_process.kernels": "ConstantKernel Product RBF",
    "sklearn.impute._base": "MissingIndicator SimpleImputer",
    "sklearn.impute._knn": "KNNImputer",
    "sklearn.isotonic": "IsotonicRegression",
    "sklearn.kernel_approximation": "AdditiveChi2Sampler Nystroem PolynomialCountSketch RBFSampler SkewedChi2Sampler",
    "sklearn.kernel_ridge": "KernelRidge",
    "sklearn.linear_model._base": "LinearRegression",
    "sklearn.linear_model._bayes": "ARDRegression BayesianRidge",
    "sklearn.linear_model._coordinate_descent": "ElasticNet ElasticNetCV Lasso LassoCV MultiTaskElasticNet "
    "MultiTaskElasticNetCV MultiTaskLasso MultiTaskLassoCV",
    "sklearn.linear_model._glm.glm": "GammaRegressor PoissonRegressor TweedieRegressor",
    "sklearn.linear_model._huber": "HuberRegressor",
    "sklearn.linear_model._least_angle": "Lars LarsCV LassoLars LassoLarsCV LassoLarsIC",
    "sklearn.linear_model._logistic": "LogisticRegression LogisticRegressionCV",
    "sklearn.linear_model._omp": "OrthogonalMatchingPursuit OrthogonalMatchingPursuitCV",
    "sklearn.linear_model._passive_aggressive": "PassiveAggressiveClassifier PassiveAggressiveRegressor",
    "sklearn.linear_model._perceptron": "Perceptron",
    "sklearn.linear_model._quantile": "QuantileRegressor",
    "sklearn.linear_model._ransac": "RANSACRegressor",
    "sklearn.linear_model._ridge": "Ridge RidgeCV RidgeClassifier RidgeClassifierCV",
    "sklearn.linear_model._stochastic_gradient": "SGDClassifier SGDOneClassSVM SGDRegressor",
    "sklearn.linear_model._theil_sen": "TheilSenRegressor",
    "sklearn.manifold._isomap": "Isomap",
    "sklearn.manifold._locally_linear": "LocallyLinearEmbedding",
    "sklearn.mixture._bayesian_mixture": "BayesianGaussianMixture",
    "sklearn.mixture._gaussian_mixture": "GaussianMixture",
    "sklearn.model_selection._classification_threshold": "FixedThresholdClassifier TunedThresholdClassifierCV",
    "sklearn.model_selection._search": "GridSearchCV RandomizedSearchCV",
    "sklearn.multiclass": "OneVsOneClassifier OneVsRestClassifier OutputCodeClassifier",
    "sklearn.multioutput": "ClassifierChain MultiOutputClassifier MultiOutputRegressor RegressorChain",
    "sklearn.naive_bayes": "BernoulliNB CategoricalNB ComplementNB GaussianNB MultinomialNB",
    "sklearn.neighbors._ball_tree": "BallTree",
    "sklearn.neighbors._classification": "KNeighborsClassifier RadiusNeighborsClassifier",
    "sklearn.neighbors._graph": "KNeighborsTransformer RadiusNeighborsTransformer",
    "sklearn.neighbors._kd_tree": "KDTree",
    "sklearn.neighbors._kde": "KernelDensity",
    "sklearn.neighbors._lof": "LocalOutlierFactor",
    "sklearn.neighbors._nca": "NeighborhoodComponentsAnalysis",
    "sklearn.neighbors._nearest_centroid": "NearestCentroid",
    "sklearn.neighbors._regression": "KNeighborsRegressor RadiusNeighborsRegressor",
    "sklearn.neighbors._unsupervised": "NearestNeighbors",
    "sklearn.metrics._dist_metrics": "EuclideanDistance64",
    "sklearn.neural_network._multilayer_perceptron": "MLPClassifier MLPRegressor",
    "sklearn.neural_network._rbm": "BernoulliRBM",
    "sklearn.neural_network._stochastic_optimizers": "AdamOptimizer SGDOptimizer",
    "sklearn.pipeline": "FeatureUnion Pipeline",
    "sklearn.preprocessing._data": "Binarizer KernelCenterer MaxAbsScaler MinMaxScaler Normalizer PowerTransformer "
    "QuantileTransformer RobustScaler StandardScaler",
    "sklearn.preprocessing._discretization": "KBinsDiscretizer",
    "sklearn.preprocessing._encoders": "OneHotEncoder OrdinalEncoder",
    "sklearn.preprocessing._function_transformer": "FunctionTransformer",
    "sklearn.preprocessing._label": "LabelBinarizer LabelEncoder MultiLabelBinarizer",
    "sklearn.preprocessing._polynomial": "PolynomialFeatures SplineTransformer",
    "sklearn.preprocessing._target_encoder": "TargetEncoder",
    "sklearn.random_projection": "GaussianRandomProjection SparseRandomProjection",
    "sklearn.semi_supervised._label_propagation": "LabelPropagation LabelSpreading",
    "sklearn.semi_supervised._self_training": "SelfTrainingClassifier",
    "sklearn.svm._classes": "LinearSVC LinearSVR NuSVC NuSVR OneClassSVM SVC SVR",
    "sklearn.tree._classes": "DecisionTreeClassifier DecisionTreeRegressor ExtraTreeClassifier ExtraTreeRegressor",
    "sklearn._loss.link": "HalfLogitLink IdentityLink Interval LogLink LogitLink MultinomialLogit",
    "sklearn._loss.loss": "AbsoluteError ExponentialLoss HalfBinomialLoss HalfGammaLoss HalfMultinomialLoss "
    "HalfPoissonLoss HalfSquaredError HalfTweedieLossIdentity HuberLoss PinballLoss",
    "scipy.interpolate._bsplines": "BSpline",
}

_LOSSES = {
    "sklearn._loss._loss": "CyAbsoluteError CyExponentialLoss CyHalfBinomialLoss CyHalfGammaLoss CyHalfMultinomialLoss "
    "CyHalfPoissonLoss CyHalfSquaredError CyHalfTweedieLossIdentity CyHuberLoss CyPinballLoss",
    "_loss": "CyAbsoluteError CyExponentialLoss CyHalfBinomialLoss CyHalfGammaLoss CyHalfMultinomialLoss "
    "CyHalfPoissonLoss CyHalfSquaredError CyHalfTweedieLossIdentity CyHuberLoss CyPinballLoss",
    "sklearn.linear_model._sgd_fast": "EpsilonInsensitive Hinge Huber Log ModifiedHuber SquaredEpsilonInsensitive "
    "SquaredHinge SquaredLoss",
}

_FUNCTIONS = {
    "sklearn.feature_selection._univariate_selection": "chi2 f_classif f_oneway f_regression r_regression",
    "sklearn.feature_selection._mutual_info": "mutual_info_classif mutual_info_regression",
    "scipy._lib.array_api_compat.numpy._aliases": "asarray",
}


def _names(table: Mapping[str, str]) -> frozenset[str]:
    return frozenset(f"{module}.{name}" for module, names in table.items() for name in names.split())


ESTIMATORS = _names(_ESTIMATORS)
"""Types of objects, among them the parts of estimators."""

LOSSES = _names(_LOSSES)
"""Compiled functions of a loss, without state that holds an index."""

FUNCTIONS = _names(_FUNCTIONS)
"""Python functions; numpy's and scipy's universal functions come on top."""

TREE = "sklearn.tree._tree.Tree"

CONTAINERS = frozenset(
    {"builtins.dict", "builtins.list", "builtins.set", "builtins.slice", "builtins.tuple", "collections.OrderedDict",
     "sklearn.utils._bunch.Bunch"}
)  # fmt: skip

SPARSE = frozenset(
    {"scipy.sparse._csc.csc_array", "scipy.sparse._csc.csc_matrix", "scipy.sparse._csr.csr_array",
     "scipy.sparse._csr.csr_matrix"}
)  # fmt: skip

RANDOM = frozenset({"numpy.random.mtrand.RandomState", "numpy.random._generator.Generator"})

FUNCTION_PLACES = frozenset({"func", "inverse_func", "score_func", "_asarray"})
"""Attributes that may be a function."""


def _is_none(value: Any) -> bool:
    return value is None


def _plain_arguments(value: Any) -> bool:
    return not value or all(isinstance(each, (bool, int, float, str, type(None))) for each in value.values())


def _hash_size(value: Any) -> bool:
    return isinstance(value, int) and 0 < value < 1 << 31


PARAMETERS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "memory": (_is_none, "None, since a cache reads and writes pickles"),
    "input": (lambda value: value == "content", "'content', else each request names files of the server"),
    "tokenizer": (_is_none, "None: a function is code"),
    "preprocessor": (_is_none, "None: a function is code"),
    "analyzer": (lambda value: value in ("word", "char", "char_wb"), "'word', 'char' or 'char_wb'"),
    "kw_args": (_plain_arguments, "numbers and texts"),
    "inv_kw_args": (_plain_arguments, "numbers and texts"),
}
"""Parameters by their names, for every estimator: the allowed values, and their description."""

HASHERS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "n_features": (_hash_size, "a number from 1 to 2147483647"),
}
"""Further parameters of HashingVectorizer and FeatureHasher."""
