"""One linear SVM for each label against all others, by scikit-learn's stochastic gradients."""

from sklearn.linear_model import SGDClassifier


def train(X, y, max_iter):
    return SGDClassifier(max_iter=max_iter, tol=None, random_state=0).fit(X, y).predict
