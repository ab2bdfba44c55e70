# The program, for servers with and without a GPU, and as the target "lambda" its worker:
#
#   make images                  builds both with docker or podman
#   docker build -t dorylus .
#   docker build -t dorylus-lambda --target=lambda .
#   docker run -v graphs:/data -v runs:/out dorylus --data=/data/STORE --out=RUN    (--gpus=all for --mode=gpu)
#
# Nothing of CUDA is inside: NVIDIA's container runtime mounts the driver, which is all
# that --mode=gpu needs. BASE_IMAGE may be one of a CUDA runtime, for the libraries that
# are used where they are there; any with glibc 2.34 or newer will do.
ARG GO_VERSION=1.26
ARG BASE_IMAGE=debian:bookworm-slim

FROM golang:${GO_VERSION}-bookworm AS build
RUN apt-get update \
 && apt-get install -y --no-install-recommends gcc libc6-dev libmetis-dev libopenblas-dev make \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /src
ENV GOTOOLCHAIN=local GOFLAGS="-trimpath -buildvcs=false"
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=unknown
# Named here, METIS is not optional. The library goes along: there is no static one.
RUN TAGS=metis VERSION="${VERSION}" ./build.sh build \
 && mkdir /licenses \
 && cp LICENSE engine/dataset/cora.NOTICE /licenses/ \
 && cp /usr/share/doc/libmetis5/copyright /licenses/metis \
 && cp /usr/share/doc/libopenblas-dev/copyright /licenses/openblas \
 && cp -L /usr/lib/*-linux-gnu/libmetis.so.5 /libmetis.so.5

# The worker is static. Lambda starts it as a user of its own choice.
FROM scratch AS lambda
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="dorylus-lambda" \
      org.opencontainers.image.description="Lambda worker of Dorylus, which trains graph neural networks" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /licenses /licenses
COPY --from=build /src/bin/dorylus-lambda /dorylus-lambda
USER 65532:65532
ENTRYPOINT ["/dorylus-lambda"]

FROM ${BASE_IMAGE} AS engine
ARG BASE_IMAGE
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="dorylus" \
      org.opencontainers.image.description="Trains graph neural networks on whole graphs, on CPUs, GPUs and Lambda workers" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="${BASE_IMAGE}"
# For s3:// and AWS.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /licenses /usr/share/doc/dorylus
COPY --from=build /libmetis.so.5 /usr/local/lib/libmetis.so.5
COPY --from=build /src/bin/dorylus-engine /src/bin/dorylus-lambda /usr/local/bin/
RUN ldconfig && install -d -o 65532 -g 65532 /cache /data /out
# Only NVIDIA's own images set the first two. The driver keeps what it has compiled in
# the third.
ENV NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    CUDA_CACHE_PATH=/cache
# The root may be read-only, with a tmpfs on /tmp.
VOLUME ["/cache", "/data", "/out"]
WORKDIR /out
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/dorylus-engine"]
