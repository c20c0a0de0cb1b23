# Published clients with our server: over standard streams, over HTTP, and behind the gateway.
# Sourced by run.

work=$dir/work
first=amber$RANDOM$RANDOM
mkdir "$work"
printf 'first line\n%s\nthird line\n' "$first" >"$work/notes.txt"
sed -e "s,FIRST,$first,g" "$here/task.scenario" >"$dir/task.scenario"

"$dir/dragoman" mcp serve --listen 127.0.0.1:0 --dir "$work" --bare 2>"$dir/serve.log" &
background+=($!)
endpoint=$(started "$dir/serve.log")/mcp
"$dir/dragoman" sim --listen 127.0.0.1:0 --scenario "$dir/task.scenario" 2>"$dir/sim.log" &
background+=($!)
cat >"$dir/gateway.yaml" <<-END
	version: 1
	providers:
	  chat: {type: compatible, base_url: "$(started "$dir/sim.log")/v1"}
	gateway:
	  routes:
	    "*": {to: "chat/sim/scenario"}
END
"$dir/dragoman" serve --listen 127.0.0.1:0 --config "$dir/gateway.yaml" --log json 2>"$dir/gateway.log" &
background+=($!)
url=$(started "$dir/gateway.log")

transports="stdio http gateway"
cat >"$dir/mcp-gateway.yaml" <<-END
	version: 1
	gateway:
	  mcp:
	    servers:
	      dragoman: {command: "$dir/dragoman", args: [mcp, serve, --dir, "$work", --bare], approval: {"*": never}}
END
"$dir/dragoman" serve --listen 127.0.0.1:0 --config "$dir/mcp-gateway.yaml" 2>"$dir/mcp-gateway.log" &
background+=($!)
behind=$(started "$dir/mcp-gateway.log")/mcp/dragoman

stdio_args="\"mcp\", \"serve\", \"--dir\", \"$work\", \"--bare\""

# inspect runs the inspector with the transport of the cell.
inspect() {
	if [ "$transport" = stdio ]; then
		clean "$node22" "$packages/.bin/mcp-inspector" --cli "$@" -- "$dir/dragoman" mcp serve --dir "$work" --bare
	else
		clean "$node22" "$packages/.bin/mcp-inspector" --cli "$endpoint" --transport http "$@"
	fi
}

# inspector lists the tools, and makes a call that succeeds and one that fails.
inspector() {
	local names failing
	names=$(inspect --method tools/list | node -e 'console.log(JSON.parse(require("fs").readFileSync(0)).tools.map((t) => t.name).join(" "))')
	[ "$names" = "list_files read_file search_files write_file apply_patch shell read_tool_output" ] || { printf 'tools: %s\n' "$names" && return 1; }
	inspect --method tools/call --tool-name read_file --tool-arg path=notes.txt | tee call.json |
		node -e 'const r = JSON.parse(require("fs").readFileSync(0)); process.exit(!r.isError && r.content[0].text.includes(process.argv[1]) ? 0 : 1)' "$first" || { cat call.json && return 1; }
	failing=$(inspect --method tools/call --tool-name read_file --tool-arg path=none.txt || true)
	node -e 'const r = JSON.parse(process.argv[1]); process.exit(r.isError && /none\.txt/.test(r.content[0].text) ? 0 : 1)' "$failing" || { printf '%s\n' "$failing" && return 1; }
	echo "The notes say $first."
}

claude() {
	if [ "$transport" = stdio ]; then
		printf '{"mcpServers": {"dragoman": {"command": "%s", "args": [%s]}}}' "$dir/dragoman" "$stdio_args" >mcp.json
	else
		printf '{"mcpServers": {"dragoman": {"type": "http", "url": "%s"}}}' "$endpoint" >mcp.json
	fi
	claude_print --mcp-config mcp.json --strict-mcp-config --allowedTools mcp__dragoman
}

codex() {
	codex_config some-model
	if [ "$transport" = stdio ]; then
		printf '\n[mcp_servers.dragoman]\ncommand = "%s"\nargs = [%s]\n' "$dir/dragoman" "$stdio_args"
	else
		printf '\n[mcp_servers.dragoman]\nurl = "%s"\n' "$endpoint"
	fi >>"$home/.codex/config.toml"
	codex_exec
}

gemini() {
	if [ "$transport" = stdio ]; then
		gemini_config "\"mcpServers\": {\"dragoman\": {\"command\": \"$dir/dragoman\", \"args\": [$stdio_args], \"trust\": true}}"
	else
		gemini_config "\"mcpServers\": {\"dragoman\": {\"httpUrl\": \"$endpoint\", \"trust\": true}}"
	fi
	gemini_prompt
}

opencode() {
	if [ "$transport" = stdio ]; then
		opencode_config "\"mcp\": {\"dragoman\": {\"type\": \"local\", \"command\": [\"$dir/dragoman\", $stdio_args], \"enabled\": true}}"
	else
		opencode_config "\"mcp\": {\"dragoman\": {\"type\": \"remote\", \"url\": \"$endpoint\", \"enabled\": true}}"
	fi
	opencode_run
}

# cell has one client use our server over one transport, and says how that went.
cell() {
	local client=$1 begun=$SECONDS status=0
	transport=$2
	[ "$transport" != gateway ] || endpoint=$behind
	home=$dir/homes/$client-$transport
	prompt="Use the server: what is the second line of notes.txt, and is there a none.txt?"
	mkdir -p "$home/work" # it has no notes of its own
	cd "$home/work"
	"$client" >"$home/out" 2>"$home/err" || status=$?
	if [ "$status" = 0 ] && grep -q "The notes say $first" "$home/out"; then
		printf 'ok, %ss' $((SECONDS - begun)) >"$home/result"
	else
		printf FAILED >"$home/result"
	fi
}

export dir bin packages node22 work first endpoint behind url stdio_args
export -f inspect inspector claude codex gemini opencode cell
for client in $clients; do
	for transport in $transports; do
		printf '%s %s\n' "$client" "$transport"
	done
done | xargs -P "$(getconf _NPROCESSORS_ONLN)" -L 1 bash -c 'cell "$1" "$2"' cell

printf '%-13s' "" $transports
printf '\n'
for client in $clients; do
	printf '%-13s' "$client"
	for transport in $transports; do
		result=$(cat "$dir/homes/$client-$transport/result" 2>/dev/null || echo FAILED)
		printf '%-13s' "$result"
		[ "$result" != FAILED ] || failed=1
	done
	printf '\n'
done
for client in $clients; do
	for transport in $transports; do
		home=$dir/homes/$client-$transport
		if ! grep -q '^ok' "$home/result" 2>/dev/null; then
			printf '\n--- %s, %s\n' "$client" "$transport"
			tail -n 15 "$home/out" "$home/err" | cut -c1-1000
		fi
	done
done
if grep -E '"status":[45]|"level":"(WARN|ERROR)"' "$dir/gateway.log"; then
	fail "the gateway has answered with errors"
fi
