"""CRFsuite by python-crfsuite, on names of features."""

import pycrfsuite


def train(X, y, algorithm, max_iterations):
    trainer = pycrfsuite.Trainer(algorithm, verbose=False)
    trainer.set_params({"max_iterations": max_iterations})
    for names, labels in zip(X, y, strict=True):
        trainer.append(names, labels)
    trainer.train("model.crfsuite")
    tagger = pycrfsuite.Tagger()
    tagger.open("model.crfsuite")
    return lambda X: [tagger.tag(names) for names in X]
