# Clearway without a toolchain:
#
#     docker build -t clearway .
#     docker run --rm -v "$PWD:/work" -u "$(id -u):$(id -g)" clearway run first.toml
#
# The first stage builds the wheel, some minutes; the second has Python, the wheel and nothing else to build with.
FROM rust:1.95.0-slim-bookworm AS wheel

RUN apt-get update \
    && apt-get install --yes --no-install-recommends git=1:2.39.* make=4.3-* python3-venv=3.11.* \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /clearway
COPY . .
# The image has this toolchain and no components that only developers need.
RUN rm rust-toolchain.toml && make wheel

FROM python:3.12.12-slim-bookworm

COPY --from=wheel /clearway/target/wheels/clearway-*.whl /tmp/wheels/
RUN pip install --no-cache-dir /tmp/wheels/*.whl \
    && rm -rf /tmp/wheels \
    && useradd --create-home --uid 1000 clearway \
    && mkdir /work \
    && chown clearway /work
# Whoever runs it with `-u` may have no home there.
ENV MPLCONFIGDIR=/tmp/matplotlib
USER 1000
WORKDIR /work
ENTRYPOINT ["clearway"]
CMD ["--help"]
