# The image that `cargo xtask image` writes, for those who build with Docker or BuildKit. That command is the one that is
# tested and shipped; this file is only parsed by a test (host/xtask/src/image/dockerfile.rs) and never built there.
FROM rust:1.95-bookworm AS build
RUN apt-get update && apt-get install --yes --no-install-recommends musl-tools ca-certificates
WORKDIR /src
COPY . .
RUN rustup target add x86_64-unknown-linux-musl && \
    cargo build --release --locked --package kerf --target x86_64-unknown-linux-musl
RUN mkdir -p /image/etc/ssl/certs /image/usr/bin /image/usr/share/doc/kerf && mkdir -m 1777 /image/tmp && \
    cp /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ca-certificates.crt && \
    printf 'root:x:0:0::/:/none\nkerf:x:65532:65532::/:/none\n' > /image/etc/passwd && \
    printf 'root:x:0:\nkerf:x:65532:\n' > /image/etc/group && \
    printf 'hosts: files dns\n' > /image/etc/nsswitch.conf && \
    cp LICENSE /image/usr/share/doc/kerf/LICENSE && \
    cp target/x86_64-unknown-linux-musl/release/kerf /image/usr/bin/kerf

FROM scratch
COPY --from=build /image/ /
ENV PATH=/usr/bin:/bin
USER 65532:65532
ENTRYPOINT ["/usr/bin/kerf"]
CMD ["--help"]
