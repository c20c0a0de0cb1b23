# An image with the dragoman command and the certificates of public authorities, and nothing else.
#
#	CGO_ENABLED=0 go build -trimpath -o dist/dragoman ./cmd/dragoman
#	cp /etc/ssl/certs/ca-certificates.crt dist/
#	docker build -t dragoman .      # or: buildah bud -t dragoman .
#	docker run -p 8080:8080 -v ./dragoman.yaml:/dragoman.yaml:ro -e OPENAI_API_KEY dragoman serve --config /dragoman.yaml --listen 0.0.0.0:8080
#
# It runs as a user without rights. Set GOMEMLIMIT to about 90 % of the container's memory.
FROM scratch
COPY dist/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY dist/dragoman /dragoman
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/dragoman"]
