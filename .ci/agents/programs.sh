# How the agent programs are set up and started: for .ci/agents/run and .ci/mcp/run. Sourced,
# never run. bin is the folder of the programs, url the base URL of their models, home the folder
# of one run, prompt what the program is asked.

# started waits for a server to say where it listens, and prints the URL.
started() {
	local url=
	for _ in $(seq 100); do
		url=$(grep -oE 'http://127\.0\.0\.1:[0-9]+' "$1" 2>/dev/null | head -n 1 || true)
		[ -n "$url" ] && break
		sleep 0.1
	done
	[ -n "$url" ] || { cat "$1" >&2 && return 1; }
	printf '%s' "$url"
}

# clean runs a program with nothing of ours in its environment, and a time limit.
clean() {
	env -i PATH="$PATH" HOME="$home" LANG=C.UTF-8 TERM=xterm-256color SHELL=/bin/bash \
		HTTP_PROXY=http://127.0.0.1:9 HTTPS_PROXY=http://127.0.0.1:9 NO_PROXY=127.0.0.1,localhost \
		no_proxy=127.0.0.1,localhost timeout 120 env "$@" </dev/null
}

# claude_print [ARG...]: docs/clients/claude-code.md
claude_print() {
	clean ANTHROPIC_BASE_URL="$url" ANTHROPIC_AUTH_TOKEN=any ANTHROPIC_MODEL=claude-sonnet-4-5 ANTHROPIC_SMALL_FAST_MODEL=claude-haiku-4-5 \
		CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 DISABLE_TELEMETRY=1 DISABLE_ERROR_REPORTING=1 DISABLE_AUTOUPDATER=1 \
		"$bin/claude" -p "$prompt" --output-format json "$@"
}

# codex_config MODEL: docs/clients/codex.md
codex_config() {
	mkdir "$home/.codex"
	cat >"$home/.codex/config.toml" <<-END
		model = "$1"
		model_provider = "dragoman"
		check_for_update_on_startup = false

		[model_providers.dragoman]
		name = "Dragoman"
		base_url = "$url/v1"
		env_key = "DRAGOMAN_KEY"
		wire_api = "responses"

		[analytics]
		enabled = false
	END
}

codex_exec() {
	clean CODEX_HOME="$home/.codex" DRAGOMAN_KEY=any \
		"$bin/codex" exec --skip-git-repo-check --sandbox danger-full-access --json "$prompt"
}

# gemini_config [FIELDS]: docs/clients/gemini-cli.md
gemini_config() {
	mkdir "$home/.gemini"
	cat >"$home/.gemini/settings.json" <<-END
		{
		  ${1:+$1,}
		  "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}},
		  "privacy": {"usageStatisticsEnabled": false},
		  "telemetry": {"enabled": false},
		  "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false}
		}
	END
}

gemini_prompt() {
	clean GOOGLE_GEMINI_BASE_URL="$url" GEMINI_API_KEY=any "$bin/gemini" -p "$prompt" --yolo --model gemini-2.5-pro --output-format json
}

# opencode_config [FIELDS]: docs/clients/opencode.md
opencode_config() {
	mkdir -p "$home/.config/opencode"
	cat >"$home/.config/opencode/opencode.json" <<-END
		{
		  ${1:+$1,}
		  "autoupdate": false,
		  "share": "disabled",
		  "model": "dragoman/gpt-4.1",
		  "small_model": "dragoman/gpt-4.1",
		  "provider": {
		    "dragoman": {
		      "npm": "@ai-sdk/openai-compatible",
		      "options": {"baseURL": "$url/v1", "apiKey": "any"},
		      "models": {"gpt-4.1": {}}
		    }
		  }
		}
	END
}

opencode_run() {
	clean OPENCODE_DISABLE_MODELS_FETCH=1 OPENCODE_DISABLE_AUTOUPDATE=1 OPENCODE_DISABLE_LSP_DOWNLOAD=1 OPENCODE_DISABLE_DEFAULT_PLUGINS=1 \
		"$bin/opencode" run "$prompt"
}

export -f started clean claude_print codex_config codex_exec gemini_config gemini_prompt opencode_config opencode_run
