# The worker, for Cloud Run or any other place that runs containers.
# `deploy/image.sh TAG` builds it. The base image comes by digest (deploy/base.sh); without one nothing is built.
ARG BASE
FROM ${BASE} AS packages
COPY requirements.txt /
RUN python -m venv /venv \
 && /venv/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes --no-deps --requirement /requirements.txt

FROM ${BASE}
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin outbox
COPY --from=packages /venv /venv
COPY worker/firestore_outbox/ /app/firestore_outbox/
RUN /venv/bin/python -m compileall -q /app
WORKDIR /app
ENV PATH=/venv/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONPATH=/app \
    PYTHONUNBUFFERED=1 \
    OUTBOX_HOST=0.0.0.0 \
    PORT=8080
USER 10001
EXPOSE 8080
CMD ["python", "-m", "firestore_outbox.cli", "worker"]
