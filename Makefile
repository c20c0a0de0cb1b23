# The commands that people type. Everything works without make, too.

.PHONY: test demo lint ci release

test: ## run the tests; needs only Go
	go test ./...

demo: ## run an agent on the embedded simulator, without a key or a network
	go run ./cmd/dragoman run "Which files are here?"

lint: ## check formatting and vet
	@test -z "$$(gofmt -l $$(git ls-files '*.go' | grep -v /testdata/))" || { gofmt -l $$(git ls-files '*.go' | grep -v /testdata/); exit 1; }
	go vet ./...

ci: ## run everything that must pass before a change goes in
	.ci/run

release: ## build archives, checksums and an SBOM in dist/: make release VERSION=v0.2.0
	go run ./internal/repo/release -version $(VERSION)
