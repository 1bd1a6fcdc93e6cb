# docker build -t ssvm-bench .
# docker run --rm -it ssvm-bench                    # make run
# docker run --rm -it ssvm-bench make check test
# docker build --build-arg LOCKED=1 -t ssvm-bench . # with the versions of experiments/requirements.lock
# With data and results outside: -v DATA:/data -v RESULTS:/ssvm-bench/results/own
FROM python:3.13-slim-bookworm

# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git make \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /ssvm-bench
ENV SSVM_BENCH_DATA=/data
ARG LOCKED
COPY . .
RUN make .venv/installed-dev LOCKED=$LOCKED

CMD ["make", "run"]
