#!/bin/sh
# Install pystruct and ad3 into the active environment, with Python 3.11 and numpy 2:
#
#     sh examples/world/install_pystruct.sh [REPOSITORY]
#
# Their last releases do not install there. This takes pystruct's last commit and ad3's last release,
# mends what is named below, and compiles their Cython modules anew. It needs git and a C++ compiler.
set -eu
REPOSITORY=${1:-https://github.com/pystruct/pystruct}
COMMIT=957193a40f3933ae5709336d46289c8ad4a60b7a # of September 2021

FOLDER=$(mktemp -d)
trap 'rm -rf "$FOLDER"' EXIT
cd "$FOLDER"
pip install numpy scikit-learn matplotlib cvxopt cython setuptools wheel

git clone --no-checkout "$REPOSITORY" pystruct
cd pystruct
git checkout --quiet "$COMMIT" -- setup.py src pystruct ':!pystruct/datasets/*.pickle'
# setuptools has no use_2to3 any more, and the C code that is there is of another Python
sed -i '/use_2to3/d; s/\.c"\]/.pyx"]/' setup.py
rm src/utils.c pystruct/inference/_viterbi.c
# numpy has no names for Python's own types any more
find pystruct -name '*.py' -exec sed -i -E 's/\bnp\.(float|int|bool)\b/\1/g' {} +
# numpy refuses to compare arrays of different lengths: as many edges as a chain has come first
sed -i 's/return (np.all(edges\[:, 0\]/return (len(edges) == n_vertices - 1 and np.all(edges[:, 0]/' \
    pystruct/inference/maxprod.py
pip install --no-deps --no-build-isolation .
cd ..

pip download --no-deps --no-build-isolation --no-binary :all: ad3==2.2.1
tar xzf ad3-2.2.1.tar.gz
cd ad3-2.2.1
# the C++ code that is there is of another Python, too, and Cython now imports by whole names
sed -i 's/\(python\/ad3\/[a-z_]*\)\.cpp/\1.pyx/' setup.py
rm python/ad3/*.cpp
sed -i 's/^from base cimport/from .base cimport/' python/ad3/*.pyx
pip install --no-deps --no-build-isolation .
