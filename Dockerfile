# Dualwall with its embedding model in it. Behind a mirror of packages or a private authority, pass what pip needs as secrets:
#   docker build --secret id=pip,src=/etc/pip.conf --secret id=ca,src=/etc/ssl/certs/ca-certificates.crt .
ARG PYTHON=python:3.11-slim-bookworm

FROM ${PYTHON} AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /src
RUN python3 -m venv /opt/dualwall
COPY requirements.lock ./
RUN --mount=type=secret,id=pip,target=/etc/pip.conf --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt \
  /opt/dualwall/bin/pip install --quiet --no-compile --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY palace palace
COPY sync sync
COPY librarian librarian
COPY ingest ingest
COPY injector injector
COPY dualwall dualwall
RUN /opt/dualwall/bin/pip install --quiet --no-deps --no-build-isolation .
RUN --mount=type=secret,id=pip,target=/etc/pip.conf --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt \
  DUALWALL_CACHE=/opt/models /opt/dualwall/bin/dualwall doctor --prepare-model && rm -f /opt/models/models/lock
# What only made the image.
RUN /opt/dualwall/bin/pip uninstall --quiet --yes hatchling \
  && rm -rf /opt/dualwall/lib/python3*/site-packages/pip /opt/dualwall/lib/python3*/site-packages/pip-* /opt/dualwall/bin/pip*

FROM ${PYTHON}
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends rsync openssh-client >/dev/null \
  && rm -rf /var/lib/apt/lists/* /var/cache/debconf/* \
  && useradd --uid 1000 --create-home dualwall && install -d -o dualwall -g dualwall /data
COPY --from=build /opt/models /opt/models
COPY --from=build /opt/dualwall /opt/dualwall
ENV PATH=/opt/dualwall/bin:$PATH DUALWALL_CACHE=/opt/models DUALWALL_CONFIG=/etc/dualwall/dualwall.toml \
  PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER dualwall
EXPOSE 8377
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=6 \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8377/readyz', timeout=4)"]
ENTRYPOINT ["dualwall"]
CMD ["serve"]
