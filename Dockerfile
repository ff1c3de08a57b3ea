# One static file in an empty image. `hack/image-check` runs the same steps without a container
# engine.
FROM rust:1.95.0-bookworm AS build
WORKDIR /src
COPY . .
ARG COMMIT=
RUN INTERLOCK_COMMIT=$COMMIT hack/static /out/interlock

FROM scratch
ARG COMMIT=
LABEL org.opencontainers.image.title="interlock" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.revision="$COMMIT"
COPY --from=build /out/interlock /interlock
# Nothing is written anywhere: a read-only root file system is enough.
USER 65532:65532
EXPOSE 9443
ENTRYPOINT ["/interlock"]
CMD ["run"]
