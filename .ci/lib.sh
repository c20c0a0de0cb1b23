# Shared by the scripts of this folder. Sourced, never run.

cd "$(dirname "${BASH_SOURCE[0]}")/.."

not_run=()

section() { printf '\n=== %s (%ds)\n' "$*" "$SECONDS"; }

# The race detector needs cgo and a C compiler.
have_race() { [ "$(CGO_ENABLED=1 go env CGO_ENABLED)" = 1 ] && command -v "$(go env CC)" >/dev/null; }

# tools_dir prints the cache directory of the tools pinned in tools/go.mod.
tools_dir() {
	local key
	key=$(cat tools/go.mod tools/go.sum | sha256sum | cut -c1-16)
	printf '%s/dragoman-tools/%s-%s' "${XDG_CACHE_HOME:-$HOME/.cache}" "$(go env GOVERSION)" "$key"
}

# tool prints the path of a pinned tool and builds it once. It returns 2 when
# its modules are not in the cache and there is no network to get them from.
tool() {
	local name=$1 package=$2 dir log
	dir=$(tools_dir)
	if [ ! -x "$dir/$name" ]; then
		mkdir -p "$dir"
		printf 'building %s; the next run finds it in %s\n' "$name" "$dir" >&2
		if ! log=$(cd tools && CGO_ENABLED=0 go build -o "$dir/$name.$$" "$package" 2>&1); then
			tail -n 20 <<<"$log" >&2
			if grep -qE 'dial tcp|no such host|i/o timeout|connection refused|GOPROXY=off' <<<"$log"; then
				return 2
			fi
			return 1
		fi
		mv "$dir/$name.$$" "$dir/$name"
	fi
	printf '%s/%s' "$dir" "$name"
}

# ollama_program prints the path of Ollama: OLLAMA, the one in PATH, or the one that was
# built before. With --install it builds one from its module, which takes minutes and a C
# compiler. It returns 2 where there is none. Newer versions need headers that are not in
# their modules.
ollama_program() {
	local version=v0.9.6 dir
	dir=$(tools_dir)
	if [ -n "${OLLAMA:-}" ]; then
		printf '%s' "$OLLAMA"
	elif command -v ollama; then
		return 0
	elif [ -x "$dir/ollama" ]; then
		printf '%s' "$dir/ollama"
	elif [ "${1-}" = --install ]; then
		mkdir -p "$dir"
		CGO_ENABLED=1 GOBIN=$dir GOFLAGS=-mod=mod go install "github.com/ollama/ollama@$version" >&2 || return 2
		printf '%s' "$dir/ollama"
	else
		return 2
	fi
}

# registry_reached reports whether npm has a registry to fetch packages from: what fails
# there is another thing than what fails where there is no network.
registry_reached() {
	timeout 60 npm ping --fetch-retries=1 >/dev/null 2>&1 || timeout 60 npm view npm version --fetch-retries=1 >/dev/null 2>&1
}

# npm_packages installs the packages that FOLDER/package.json pins into a folder of the cache,
# once, and sets packages to it. It returns 2 where npm or a registry to get them from is
# missing.
npm_packages() {
	local name=$1 folder=$2 log
	packages=${XDG_CACHE_HOME:-$HOME/.cache}/dragoman-$name/$(sha256sum "$folder/package.json" | cut -c1-16)
	[ -e "$packages/installed" ] && return 0
	if ! command -v npm >/dev/null; then
		echo "there is no npm here"
		return 2
	fi
	printf 'installing packages; the next run finds them in %s\n' "$packages"
	mkdir -p "$packages"
	cp "$folder/package.json" "$packages/"
	if ! log=$(cd "$packages" && timeout 900 npm install --no-fund --no-audit --no-package-lock 2>&1); then
		tail -n 5 <<<"$log"
		registry_reached && return 1
		echo "the registry of npm cannot be reached"
		return 2
	fi
	touch "$packages/installed"
}

# nested_modules lists the directories of nested modules that have code.
nested_modules() {
	git ls-files --cached --others --exclude-standard -- '*/go.mod' | sed 's,/go\.mod$,,' |
		grep -v -e '^tools$' -e 'testdata' | sort || true
}

# fuzz_targets prints "package target" for every fuzz target of the module.
fuzz_targets() {
	local list
	list=$(go test -list '^Fuzz' ./...) || {
		printf '%s\n' "$list" >&2
		return 1
	}
	awk '/^Fuzz/ { names[n++] = $1 } $1 == "ok" { for (i = 0; i < n; i++) print $2, names[i]; n = 0 }' <<<"$list"
}

# fuzz runs one target. The fuzzer sometimes reports its own deadline as a
# failure (golang/go#48591); that, and nothing else, is tried once more.
fuzz() {
	local package=$1 target=$2 time=$3 out attempt
	for attempt in 1 2; do
		if out=$(go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 2s -parallel 1 "$package" 2>&1); then
			printf '%s %s: %s\n' "${package##*/dragoman/}" "$target" "$(grep -o 'execs: [0-9]*' <<<"$out" | tail -n 1)"
			return 0
		fi
		if [ "$attempt" = 2 ] || ! grep -q 'context deadline exceeded' <<<"$out" || grep -q 'Failing input' <<<"$out"; then
			break
		fi
	done
	printf '%s\n' "$out"
	return 1
}

# fuzz_all runs every target, as many at a time as there are cores, each with one
# worker: that keeps the cores busy while a target builds and gathers its corpus.
fuzz_all() {
	local targets
	targets=$(fuzz_targets)
	if [ -z "$targets" ]; then
		echo "no fuzz targets"
		return 0
	fi
	export -f fuzz
	export time=$1
	xargs -P "$(getconf _NPROCESSORS_ONLN)" -L 1 bash -c 'fuzz "$1" "$2" "$time" </dev/null || exit 255' fuzz <<<"$targets"
}

# start_postgres starts a database of its own on a loopback port, for as long as the
# script runs, and sets DRAGOMAN_POSTGRES to its URL; it leaves one that is set
# already. Where there is no PostgreSQL it installs Debian's, and returns 2 when that
# cannot be done. The server does not run as root, so that it starts in containers.
start_postgres() {
	if [ -n "${DRAGOMAN_POSTGRES:-}" ]; then
		echo "using the database that DRAGOMAN_POSTGRES names"
		return 0
	fi
	local as=() password port
	postgres_bin=$(postgres_programs)
	if [ -z "$postgres_bin" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		echo "installing PostgreSQL"
		{ timeout 300 apt-get update && DEBIAN_FRONTEND=noninteractive timeout 600 apt-get install -y --no-install-recommends postgresql; } >/dev/null 2>&1 || true
		postgres_bin=$(postgres_programs)
	fi
	if [ -z "$postgres_bin" ]; then
		return 2
	fi
	if [ "$(id -u)" = 0 ]; then
		if ! id postgres >/dev/null 2>&1 || ! command -v runuser >/dev/null; then
			return 2
		fi
		as=(runuser -u postgres --)
	fi
	postgres_as=("${as[@]}")
	postgres_dir=$(mktemp -d)
	trap stop_postgres EXIT
	password=$(od -An -tx1 -N16 /dev/urandom | tr -d ' \n')
	printf '%s\n' "$password" >"$postgres_dir/password"
	if [ "${#as[@]}" -gt 0 ]; then
		chown -R postgres "$postgres_dir"
	fi
	# Tests kill clients, never the server: it need not wait for the disk.
	for _ in 1 2 3; do # another program may take the port
		port=$(shuf -i 20000-40000 -n 1)
		if (cd "$postgres_dir" && { [ -d data ] || "${as[@]}" "$postgres_bin/initdb" -D "$postgres_dir/data" -U dragoman -A scram-sha-256 --pwfile "$postgres_dir/password" -E UTF8 --no-sync; } &&
			"${as[@]}" "$postgres_bin/pg_ctl" -D "$postgres_dir/data" -w -l "$postgres_dir/log" \
				-o "-p $port -c listen_addresses=127.0.0.1 -c unix_socket_directories='$postgres_dir' -c fsync=off" start) >"$postgres_dir.out" 2>&1; then
			export DRAGOMAN_POSTGRES="postgres://dragoman:$password@127.0.0.1:$port/postgres?sslmode=disable"
			return 0
		fi
	done
	cat "$postgres_dir.out"
	cat "$postgres_dir/log" 2>/dev/null || true
	return 1
}

# postgres_programs prints the folder of the newest server there is.
postgres_programs() {
	local found
	found=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
	if [ -z "$found" ] && command -v pg_ctl >/dev/null && command -v initdb >/dev/null; then
		found=$(dirname "$(command -v pg_ctl)")
	fi
	printf '%s' "$found"
}

# stop_postgres ends the database that start_postgres made.
stop_postgres() {
	[ -n "${postgres_dir:-}" ] || return 0
	(cd "$postgres_dir" && "${postgres_as[@]}" "$postgres_bin/pg_ctl" -D "$postgres_dir/data" -m immediate stop) >/dev/null 2>&1 || true
	rm -rf "$postgres_dir" "$postgres_dir.out"
	postgres_dir=
}
