# Published servers with the command: accepted, called, and used by an agent. Sourced by run.

mkdir -p "$dir/command/files"
cd "$dir/command"
# Its tools get a prefix, because run has tools with some of their names.
printf 'the word is %s\n' "amber$$" >files/notes.txt
touch everything.log
port=$((20000 + RANDOM % 20000))
PORT=$port "$node22" "$packages/@modelcontextprotocol/server-everything/dist/index.js" streamableHttp >everything.log 2>&1 &
background+=($!)
for _ in $(seq 100); do
	grep -q listening everything.log && break
	sleep 0.1
done
cat >servers.json <<-END
	{"mcpServers": {
	  "files": {"command": "$node22", "args": ["$packages/@modelcontextprotocol/server-filesystem/dist/index.js", "$PWD/files"]},
	  "memory": {"command": "$node22", "args": ["$packages/@modelcontextprotocol/server-memory/dist/index.js"], "env": {"MEMORY_FILE_PATH": "$PWD/memory.jsonl"}},
	  "web": {"type": "http", "url": "http://localhost:$port/mcp"}
	}}
END
command() { HOME=$dir/command XDG_STATE_HOME=$dir/command timeout 60 "$dir/dragoman" "$@"; }

held=$(command run --mcp servers.json --model sim/echo --no-session --bare hello 2>&1 >/dev/null || true)
expect "before accept, run names the command" "$(grep -c 'dragoman mcp accept' <<<"$held" | sed 's/[1-9].*/named/')" named
expect "mcp accept --all" "$(command mcp accept --all --mcp servers.json 2>&1 | grep -o '^[a-z]*: [0-9]* tools accepted')" \
	"$(printf '%s\n' 'files: 14 tools accepted' 'memory: 9 tools accepted' 'web: 15 tools accepted')"
called() { command mcp test "$@" --mcp servers.json 2>&1 | sed -e '1,/ returned after /d'; }
expect "mcp test, stdio" "$(called files read_text_file --args "{\"path\": \"$PWD/files/notes.txt\"}")" "the word is amber$$"
expect "mcp test, HTTP" "$(called web get-sum --args '{"a": 2, "b": 3}')" "The sum of 2 and 3 is 5."
status=0
command mcp test files read_text_file --args '{"path": "/etc/hostname"}' --mcp servers.json >test.log 2>&1 || status=$?
expect "mcp test, a call that fails" "$status $(grep -o 'Access denied' test.log)" "1 Access denied"

cat >run.scenario <<-END
	turn end
	  match turn 2
	  match result amber$$
	  match result /The sum of 2 and 3 is 5/
	  match result /Access denied/
	  say The word is amber$$, the sum 5, and a picture has come.

	# Chat has a picture of a result in a message of the user, which is a turn of its own.
	turn after the picture
	  match turn 2
	  match user /Attached to the result/
	  say The word is amber$$, the sum 5, and a picture has come.

	turn begin
	  match turn 1
	  match tool /^mcp_files__read_text_file$/
	  match tool /^get-sum$/
	  call mcp_files__read_text_file {"path": "$PWD/files/notes.txt"}
	  call get-sum {"a": 2, "b": 3}
	  call get-tiny-image {}
	  call mcp_files__read_text_file {"path": "/etc/hostname"}
END
"$dir/dragoman" sim --listen 127.0.0.1:0 --scenario run.scenario 2>sim.log &
background+=($!)
models=$(started sim.log)
for dialect in compatible openai anthropic gemini; do
	case $dialect in
	compatible | openai) base=$models/v1 ;;
	*) base=$models ;;
	esac
	cat >dragoman.yaml <<-END
		version: 1
		providers:
		  $dialect: {base_url: "$base", api_key_env: SIM_KEY}
	END
	expect "run with two servers, $dialect" "$(SIM_KEY=any DRAGOMAN_CONFIG=dragoman.yaml command run --model "$dialect/sim/scenario" --mcp servers.json --no-session --bare \
		--allow mcp_files__read_text_file,get-sum,get-tiny-image go 2>run.log || tail -n 20 run.log)" "The word is amber$$, the sum 5, and a picture has come."
done
cd "$here/../.."
