package shell

import (
	"errors"
	"strings"
	"testing"
)

func TestAttack_ProgramsThatRunThroughArguments(t *testing.T) {
	patterns := strings.Split("sed ...|awk ...|gawk ...|tar ...|sort ...|git ...|rg ...|man ...|make ...|go ...|rsync ...|scp ...|split ...|wget ...|"+
		"python3 manage.py ...|python3 -m pytest ...|npm run lint ...|npm ls ...|docker ps ...|git log ...|sed -n * ...|make test-*|cargo test ...", "|")
	list, err := Allow(patterns...)
	if err != nil {
		t.Fatal(err)
	}
	permissive, err := Options{Indirect: true}.Allow(patterns...)
	if err != nil {
		t.Fatal(err)
	}
	for _, refused := range []string{
		`sed e`, `sed '1e ls' f`, `sed 's/a/ls/e' f`, `sed 's/a/b/;e ls' f`, `sed -n 's/x/y/w out' f`, `sed -i 'w out' f`, `sed -e p -e e f`, `sed -ne e f`,
		`sed --expression=e f`, `sed --expression e f`, `sed --exp=e f`, `sed -f script f`, `sed --file=script f`, `sed -nf script f`, `sed 'r /etc/passwd' f`,
		`sed f -e e`, `sed 's,a,b,e' f`, `sed '/x/e' f`, `sed -- e f`, `sed 's/[/]/e/;s//x/e' f`,
		`sed 's/[]/]/g;/e;#/p' f`, `sed 's/[^]/]/g;/e;#/p' f`, `sed '/[]/]p;/e;#/p' f`, `sed 's/[[.a.]/]/g;/e;#/p' f`, `go -C d generate`, `go -C d run x`, `go -C d tool x`,
		`git log --output=.git/config '--format=[core]%nfsmonitor=./x'`, `git diff --out .git/config`, `git apply --unsafe-paths f`,
		`sed --line-length 5 e f`, `sed --line-l 5 '1e ls' f`, `sed --line-length=5 e f`,
		`git merge-index sh -a`, `git -C d merge-index -o sh f`, `git remote-ext x 'sh -c ls'`, `git instaweb --httpd=sh`, `git --attr-source x config core.pager sh`,
		`awk 'BEGIN{system("ls")}'`, `awk '{print | "sh"}' f`, `awk 'BEGIN{"ls" | getline x}'`, `gawk -f x f`, `awk -f x`, `gawk --load=x 1`, `gawk -e 1 f`, `gawk '@load "x"' f`,
		`tar xf a.tar --to-command=sh`, `tar xf a.tar --to-com=sh`, `tar -x -I sh -f a`, `tar xIf sh a`, `tar cf a b --checkpoint=1 --checkpoint-action=exec=sh`, `tar --use-compress-program sh -xf a`,
		`sort --compress-program=sh f`, `sort --compress-prog sh f`, `split --filter=sh f`,
		`git -c core.pager=sh log`, `git -C d -c core.pager=sh log`, `git -calias.x=!sh x`, `git --config-env=core.pager=X log`, `git --exec-path=/tmp status`,
		`git -C d status`, `git --no-pager -C d status`, `git --git-dir=d status`, `git --git-dir d status`, `git --bare status`,
		`git config core.pager sh`, `git rebase -x sh main`, `git rebase --exec=sh main`, `git bisect run sh`, `git submodule foreach sh`, `git grep -Osh x`,
		`git clone -u sh x`, `git fetch --upload-pack=sh x`, `git fetch --upload-p sh x`, `git difftool -x sh`, `git log --ext-diff`,
		`rg --pre sh x`, `rg --pre=sh x`, `man -P sh ls`, `man --pager=sh ls`, `man -Hsh ls`,
		`make SHELL=sh`, `make -f x`, `make --eval=x`, `make --file=x`, `make -sf x`,
		`go test -exec sh ./...`, `go vet -vettool=x ./...`, `go build -toolexec=sh .`, `go run x`, `go generate ./...`, `go test --exec=sh .`,
		`go build -ldflags=-extld=sh .`, `go build -ldflags '-linkmode=external -extld sh' .`, `go build -ldflags ' -extld=sh' .`, `go env -w CC=sh`, `go fix -fixtool=sh .`,
		`rsync -e sh a b:c`, `rsync -avze sh a b:c`, `rsync --rsh=sh a b:c`, `scp -S sh a b:c`, `scp -oProxyCommand=sh a b:c`,
		`wget -e use_askpass=sh x`, `wget --use-askpass=sh x`, `cargo test --config x`,
	} {
		if _, err := list.Check(refused); !errors.Is(err, ErrNotAllowed) || !strings.Contains(err.Error(), "set Indirect") {
			t.Errorf("%s: %v", refused, err)
		}
		if _, err := permissive.Check(refused); err != nil {
			t.Errorf("with Indirect, %s: %v", refused, err)
		}
	}
	for _, allowed := range []string{
		`sed -n 1,20p f`, `sed 's/a/b/g' f`, `sed -e 's|a|b|' -e '$d' f`, `sed -i.bak '/x/d;3q' f`, `sed -E 's/(a)/\1\/e/' f`, `sed -n '/a/,/b/p' file.e`, `sed 'y/abc/def/' f`, `sed 's/[[:space:]]*$//;s/[^a-z]/x/' f`, `go -C d test ./...`, `sed --line-length 5 -n l f`,
		`awk '{print $1}' f`, `awk -F: 'NR==1{print $2}' f`, `tar -xzf a.tgz`, `tar czf a.tgz b`, `tar tvf a.tar`, `sort -u -k2 f`,
		`git log --oneline -5`, `git log -c`, `git diff --text`, `git log --cc`, `git status`, `git commit -m x`, `git diff -C`, `git --no-pager log`, `git rebase main`, `git grep x`, `git push -u origin main`,
		`rg -n x`, `man ls`, `make`, `make -j4 test`, `make -k all`, `make test-a`, `go test -run=x ./...`, `go build -o x .`, `go build -ldflags=-X=main.version=1 .`, `go env GOROOT`, `rsync -av a b`,
		`python3 manage.py -c x`, `python3 -m pytest -k x`, `npm run lint --fix`, `npm ls --all`, `docker ps -a`, `cargo test -q`,
	} {
		if _, err := list.Check(allowed); err != nil {
			t.Errorf("%s: %v", allowed, err)
		}
	}
}

func TestPatternsForInterpretersAreRefused(t *testing.T) {
	for _, pattern := range []string{
		"python ...", "python3 *", "python3.12 -c *", "perl -e *", "perl ...", "node ...", "ruby -e *", "/usr/bin/python3 ...", "less *", "vim ...", "npx ...", "npm ...",
		"npm run *", "npm exec ...", "docker ...", "docker run ...", "docker exec * ...", "kubectl exec ...", "go run *", "go generate ...", "git config ...", "git bisect ...",
		"tar --to-command=* ...", "sqlite3 ...", "java ...", "java -cp * Main", "m4 ...", "dc ...", "uv run *", "pip install *", "go -C d generate ...", "git --no-pager config ...",
	} {
		_, err := Allow(pattern)
		if !errors.Is(err, ErrPattern) || !strings.Contains(err.Error(), "set Indirect") {
			t.Errorf("%s: %v", pattern, err)
		}
		if _, err := (Options{Indirect: true}).Allow(pattern); err != nil {
			t.Errorf("with Indirect, %s: %v", pattern, err)
		}
	}
	// Every word of the command is in the pattern, or the rest are arguments of a script that is.
	list, err := Allow("python -c pass", "less README", "npm run build", "docker run hello", "git -c color.ui=false log", "git -c color.ui=false diff ...", "git -C docs log ...", "sed e", "python tools/x.py ...", "rsync -e ssh ...", "go run ./cmd/x ...")
	if err != nil {
		t.Fatal(err)
	}
	for _, allowed := range []string{"python -c pass", "less README", "npm run build", "git -c color.ui=false log", "git -c color.ui=false diff x", "git -C docs log -5", "sed e", "python tools/x.py -v", "rsync -e ssh a b:c", "go run ./cmd/x y"} {
		if _, err := list.Check(allowed); err != nil {
			t.Errorf("%s: %v", allowed, err)
		}
	}
	for _, refused := range []string{"git -c color.ui=false diff --ext-diff", "git -C other log", "rsync -e ssh --rsync-path=x a b:c"} {
		if _, err := list.Check(refused); !errors.Is(err, ErrNotAllowed) {
			t.Errorf("%s: %v", refused, err)
		}
	}
}

// A word of the pattern is trusted, but the rest of the command must not change its meaning.
func TestAttack_PatternWordsDoNotHideOtherPrograms(t *testing.T) {
	for _, tc := range []struct{ pattern, refused, allowed string }{
		{"sed -n 1p ...", `sed -n 1p -e '1e ls' f ;; sed -n 1p --expression='1e ls' f ;; sed -n 1p -f x`, "sed -n 1p f ;; sed -n 1p -e 2p f"},
		{"sed -i s/a/b/e ...", `sed -i s/a/b/e -e e f`, "sed -i s/a/b/e f"},
		{"sed -f x.sed ...", `sed -f x.sed -f y.sed f ;; sed -f x.sed -e e f`, "sed -f x.sed e"},
		{"sed -f * ...", "sed -f x.sed f", ""},
		{"awk -F : ...", `awk -F : 'BEGIN{system("ls")}' ;; awk -F : -f x`, "awk -F : '{print $1}' f"},
		{"awk --field : ...", `awk --field : 'BEGIN{system("ls")}'`, "awk --field : 1 f"},
		{"awk -v x=1 ...", `awk -v x=1 '{print | "sh"}'`, "awk -v x=1 '{print x}' f"},
		{"awk -f x.awk ...", `awk -f x.awk -f y.awk ;; awk -f x.awk -e 'BEGIN{system("ls")}'`, "awk -f x.awk system.log"},
		{"awk {print|\"sort\"} ...", "", `awk '{print|"sort"}' system.log`},
		{"uv ...", "uv run sh ;; uv --directory d run sh ;; uv tool run x", "uv sync ;; uv lock --check"},
		{"helm ...", "helm --kube-apiserver x plugin install y ;; helm list --kubeconfig x", "helm list"},
		{"kubectl get ...", "kubectl get pods --kubeconfig x ;; kubectl get --kubeconfig=x pods", "kubectl get pods"},
		{"gcc ...", "gcc -Wl,@x a.c ;; gcc -Wp,@x a.c", "gcc -Wl,-s a.c"},
		{"install ...", "install -s --strip-program=./x a b", "install -m 644 a b"},
		{"java -jar x.jar ...", "java -jar y.jar", "java -jar x.jar y"},
	} {
		list := mustAllow(t, tc.pattern)
		check := func(commands string, allowed bool) {
			for command := range strings.SplitSeq(commands, " ;; ") {
				if _, err := list.Check(command); command != "" && (err == nil) != allowed {
					t.Errorf("%s: %s: %v", tc.pattern, command, err)
				}
			}
		}
		check(tc.refused, false)
		check(tc.allowed, true)
	}
}

// Scripts are checked like commands, and words that are known only at run time are refused.
func TestAttack_ScriptsThatRunThroughArguments(t *testing.T) {
	list := mustAllow(t, "git ...", "ls ...", "xargs ...", "tar ...")
	for text, allowed := range map[string]bool{
		"ls | xargs git log": false, "git log $x": false, "ls; git -c core.pager=sh log": false, "git log | ls": true, "ls $x": true, `tar xf "$f"`: false,
	} {
		c, _ := ParseScript(text)
		if err := list.Allows(&c); (err == nil) != allowed {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// More programs that run others through their arguments, each with a harmless use.
func TestAttack_MoreProgramsThatRunThroughArguments(t *testing.T) {
	for _, tc := range []struct{ program, refused, allowed string }{
		{"rpm", `rpm --eval '%(sh)'|rpm -E '%(sh)'|rpm --define 'x %(sh)' -q a|rpm -D 'x %(sh)' -q a|rpm --pipe sh -qa|rpm --load x -q a|rpm --macros=x -q a|rpm --rcfile x -q a`, `rpm -qa|rpm -qi bash|rpm -q --queryformat x bash`},
		{"rpmbuild", "", ""},
		{"apt", `apt -o APT::Update::Pre-Invoke::=sh update|apt -c x update|apt update --option x|apt --config-file=x list`, `apt list|apt show bash`},
		{"apt-get", `apt-get -o APT::Update::Pre-Invoke::=sh update|apt-get -oDebug::x=1 update|apt-get --option=x update|apt-get --config-file=x update`, `apt-get update|apt-get -y install x`},
		{"apt-cache", `apt-cache -o x=y show bash`, `apt-cache show bash`},
		{"dpkg", `dpkg --pre-invoke=sh -l|dpkg --post-invoke sh -l`, `dpkg -l|dpkg --print-architecture`},
		{"dnf", `dnf -c x list|dnf --setopt=pluginpath=x list`, `dnf list|dnf info bash`},
		{"ansible", "", ""},
		{"ansible-playbook", "", ""},
		{"gh", `gh alias set x '!sh'|gh alias import f|gh extension install o/x|gh ext exec x|gh config set pager sh|gh codespace ssh|gh cs ssh|gh browse`, `gh pr list|gh pr view 1|gh api /user|gh run list`},
		{"glab", `glab alias set x '!sh'|glab config set editor sh`, `glab version`},
		{"openssl", `openssl engine x -pre SO_PATH:x|openssl dgst -engine x f|openssl dgst -provider-path x f|openssl dgst -provider x f|openssl req -config x|openssl list -provider-path=x`, `openssl dgst -sha256 f|openssl x509 -in f -text`},
		{"ld", `ld -plugin x.so a.o|ld --plugin=x.so a.o|ld -plugin=x.so a.o|ld @x`, `ld -o x a.o`},
		{"ar", `ar --plugin x.so rc l.a a.o`, `ar t l.a`},
		{"nm", `nm --plugin x.so a.o`, `nm a.o`},
		{"gcc", `gcc -wrapper sh,-c a.c|gcc -fplugin=x.so a.c|gcc -B/tmp a.c|gcc -specs=x a.c|gcc --specs=x a.c|gcc -Wl,-plugin,x.so a.c|gcc -Xlinker -plugin a.c|gcc @x`, `gcc -c a.c|gcc -Wall -O2 -o a a.c|gcc -Wl,-rpath,/x a.c`},
		{"g++", `g++ -wrapper sh,-c a.cc|g++ -fplugin=x.so a.cc|g++ -Wl,-plugin,x a.cc`, `g++ -c a.cc`},
		{"clang", `clang -fplugin=x.so a.c|clang -Xclang -load a.c|clang -fpass-plugin=x.so a.c|clang -fuse-ld=/tmp/x a.c|clang --ld-path=/tmp/x a.c|clang --config=x a.c|clang -Wl,-plugin,x a.c`, `clang -c a.c`},
		{"clang++", `clang++ -fplugin=x.so a.cc|clang++ -Xclang -load a.cc`, `clang++ -c a.cc`},
		{"c++", `c++ -wrapper sh,-c a.cc`, `c++ -c a.cc`},
		{"rustc", `rustc -C linker=sh a.rs|rustc -Clinker=sh a.rs|rustc --codegen linker=sh a.rs|rustc --codegen=linker=sh a.rs|rustc -Z x a.rs`, `rustc --edition 2021 a.rs|rustc -C opt-level=3 a.rs`},
		{"make", `make SHELL=sh|make --eval=x|make -E x`, `make all`},
		{"zip", `zip -T -TT sh a b|zip -TT sh a b|zip --unzip-command sh a b`, `zip -r a b`},
		{"man", `man -P sh ls`, `man ls`},
		{"vim", "", ""},
		{"vimdiff", "", ""},
		{"tig", "", ""},
		{"perl", "", ""},
		{"svn", `svn --config-option config:tunnels:x=sh ls x|svn diff --diff-cmd sh|svn merge --diff3-cmd=sh x|svn commit --editor-cmd sh|svn --config-dir x ls`, `svn log|svn status`},
		{"hg", `hg --config alias.x=!sh x|hg log --config=x|hg --cwd d --config x log|hg log --debugger`, `hg log|hg status`},
		{"curl", `curl -K x|curl -sK x|curl --config x|curl --engine x u`, `curl -s https://example.com`},
		{"gpg", `gpg --photo-viewer sh -k|gpg --agent-program=sh -k|gpg --options x -k`, `gpg --verify f`},
		{"ip", `ip netns exec x sh|ip -n x netns exec y sh|ip -b x|ip -ba x|ip -batch x`, `ip addr|ip -4 route|ip -br addr`},
		{"helm", `helm plugin install x|helm -n x plugin install y|helm template --post-renderer sh x`, `helm list|helm version`},
		{"gradle", `gradle -I x test|gradle --init-script x test|gradle -b x test|gradle -p x test`, `gradle test`},
		{"ccache", "", ""},
		{"bat", `bat --pager sh a|bat --pager=sh a|bat --config-file x a`, `bat a`},
		{"fzf", `fzf --preview sh|fzf --bind=enter:execute:sh|fzf --with-shell sh`, `fzf -f x`},
		{"restic", `restic --password-command sh ls|restic -o sftp.command=sh ls`, `restic snapshots`},
		{"rclone", `rclone --password-command sh ls x|rclone --config x ls y`, `rclone version`},
		{"borg", `borg --rsh sh list|borg list --remote-path=sh`, `borg list`},
		{"bazel", `bazel run --run_under=sh x|bazel --bazelrc=x build y`, `bazel build x`},
		{"mvn", `mvn exec:exec|mvn -q org.codehaus.mojo:exec-maven-plugin:exec|mvn -Dmaven.ext.class.path=x test`, `mvn test|mvn -q -DskipTests package`},
		{"dotnet", "", ""},
		{"direnv", `direnv exec . sh`, `direnv status`},
		{"rustup", `rustup run stable sh`, `rustup show`},
		{"asdf", `asdf exec sh|asdf cmd x`, `asdf list`},
		{"mise", `mise exec -- sh|mise -C d x -- sh|mise run task|mise watch x`, `mise ls`},
		{"stack", `stack exec sh|stack runghc x.hs|stack ghci`, `stack build`},
		{"cabal", `cabal exec sh|cabal run x|cabal repl`, `cabal build`},
		{"mix", `mix cmd sh|mix run x.exs|mix eval x|mix do cmd sh`, `mix test`},
		{"nix", `nix run x|nix shell x -c sh|nix develop`, `nix build|nix search x`},
		{"aws", `aws configure set credential_process sh|aws --profile p configure set credential_process sh`, `aws s3 ls`},
		{"systemctl", `systemctl edit x`, `systemctl status`},
		{"sg", "", ""},
		{"hyperfine", "", ""},
		{"xterm", "", ""},
		{"xdg-open", "", ""},
		{"w3m", "", ""},
		{"nix-shell", "", ""},
	} {
		t.Run(tc.program, func(t *testing.T) {
			permissive, err := Options{Indirect: true}.Allow(tc.program + " ...")
			if err != nil {
				t.Fatal(err)
			}
			list, err := Allow(tc.program + " ...")
			if tc.allowed == "" {
				if !errors.Is(err, ErrPattern) || !strings.Contains(err.Error(), "set Indirect") {
					t.Errorf("the pattern: %v, though any use runs other programs", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for text := range strings.SplitSeq(tc.refused, "|") {
				if _, err := list.Check(text); !errors.Is(err, ErrNotAllowed) || !strings.Contains(err.Error(), "set Indirect") {
					t.Errorf("%s: %v", text, err)
				}
				if _, err := permissive.Check(text); err != nil {
					t.Errorf("with Indirect, %s: %v", text, err)
				}
			}
			for text := range strings.SplitSeq(tc.allowed, "|") {
				if _, err := list.Check(text); err != nil {
					t.Errorf("%s: %v", text, err)
				}
			}
		})
	}
}
