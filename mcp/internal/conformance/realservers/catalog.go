package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// pixel is a PNG image with one pixel.
const pixel = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89\x00\x00\x00\rIDATx\xdac\xfc\xcf\xf0\x1f\x00\x05\x00\x01\xff\x89\x99=\x1d\x00\x00\x00\x00IEND\xaeB`\x82"

// catalog returns the servers, with files for them in a folder.
func catalog(work string) ([]published, error) {
	files := filepath.Join(work, "files")
	if err := os.MkdirAll(files, 0o750); err != nil {
		return nil, err
	}
	for name, content := range map[string]string{"notes.txt": "first line\nsecond line\n", "dot.png": pixel} {
		if err := os.WriteFile(filepath.Join(files, name), []byte(content), 0o600); err != nil {
			return nil, err
		}
	}
	return []published{
		{
			name: "server-everything", file: "@modelcontextprotocol/server-everything/dist/index.js", check: everything,
			http: func(transport, port string) (args, env []string, path string) {
				if transport == "SSE" {
					return []string{"sse"}, []string{"PORT=" + port}, "/sse"
				}
				return []string{"streamableHttp"}, []string{"PORT=" + port}, "/mcp"
			},
		},
		{name: "server-filesystem", file: "@modelcontextprotocol/server-filesystem/dist/index.js", args: []string{files}, check: filesystem},
		{
			name: "server-memory", file: "@modelcontextprotocol/server-memory/dist/index.js", check: memory,
			env: map[string]string{"MEMORY_FILE_PATH": filepath.Join(work, "memory.jsonl")},
		},
		{name: "time-mcp", file: "time-mcp/dist/index.js", check: clock},
		{
			name: "mcp-taskmanager", file: "@kazuph/mcp-taskmanager/dist/index.js", check: tasks,
			env: map[string]string{"TASK_MANAGER_FILE_PATH": filepath.Join(work, "tasks.json")},
		},
		{
			name: "mcp-server-chart", file: "@antv/mcp-server-chart/build/index.js", check: charts,
			http: func(transport, port string) (args, env []string, path string) {
				if transport == "SSE" {
					return []string{"-t", "sse", "-p", port}, nil, "/sse"
				}
				return []string{"-t", "streamable", "-p", port}, nil, "/mcp"
			},
		},
	}, nil
}

func everything(u *use) {
	u.equal("tools", u.names(), "echo get-annotated-message get-env get-resource-links get-resource-reference get-structured-content get-sum get-tiny-image gzip-file-as-resource "+
		"toggle-simulated-logging toggle-subscriber-updates trigger-long-running-operation get-roots-list trigger-elicitation-request trigger-url-elicitation trigger-sampling-request simulate-research-query")
	u.call("echo", `{"message":"hello"}`, "ok: Echo: hello")
	u.call("get-sum", `{"a":2,"b":3.5}`, "ok: The sum of 2 and 3.5 is 5.5.")
	u.call("get-sum", `{"a":"two","b":3}`, "error: The arguments of get-sum are invalid, so it did not run:\n/a: must be number, is string\n…")
	u.call("get-structured-content", `{"location":"New York"}`, `ok: {"temperature":33,"conditions":"Cloudy","humidity":82}`)
	u.call("get-tiny-image", `{}`, "ok: Here's the image you requested:\nThe image above is the MCP logo. [image image/png iVBORw0KGgoA]")
	u.call("get-annotated-message", `{"messageType":"success","includeImage":true}`, "ok: Operation completed successfully [image image/png iVBORw0KGgoA]")
	u.call("get-resource-links", `{"count":2}`, "ok: Here are 2 resource links to resources available in this server:\n"+
		"Link to a resource: Blob Resource 1 <demo://resource/dynamic/blob/1> (text/plain): Resource 1: plaintext resource\n"+
		"Link to a resource: Text Resource 2 <demo://resource/dynamic/text/2> (text/plain): Resource 2: plaintext resource")
	u.call("get-resource-reference", `{"resourceType":"Blob","resourceId":3}`,
		"ok: Returning resource reference for Resource 3:\nYou can access this resource using the URI: demo://resource/dynamic/blob/3 [file text/plain UmVzb3VyY2Ug]")
	u.call("get-resource-reference", `{"resourceType":"Text","resourceId":-1}`, "error: Invalid resourceId: -1. Must be a finite positive integer.")
	u.call("trigger-long-running-operation", `{"duration":0.2,"steps":2}`, "ok: Long running operation completed. Duration: 0.2 seconds, Steps: 2.")
	u.call("get-roots-list", `{}`, "ok: Current MCP Roots (1 total):\n\n1. "+filepath.Base(u.work)+"\n   URI: file://"+u.work+"\n\n…")
	u.form = `{"name":"Ada Lovelace"}`
	u.call("trigger-elicitation-request", `{}`, "ok: ✅ User provided the requested information!\nUser inputs:\n- Name: Ada Lovelace\n- Favorite Integer: 42\n- Favorite Number: 3.14\n…")
	u.form = ""
	u.call("trigger-url-elicitation", `{"url":"https://example.com/login","message":"Sign in","elicitationId":"1"}`,
		"ok: ✅ User completed the URL elicitation flow.\nElicitation ID: 1\nURL: https://example.com/login\n\nRaw result: {\n  \"action\": \"accept\"\n}")
	u.call("trigger-sampling-request", `{"prompt":"hello","maxTokens":20}`, "ok: LLM sampling result: \n{\n  \"model\": \"sim/echo\",…\"text\": \"Resource trigger-sampling-request context: hello\"\n  }\n}")
	u.call("simulate-research-query", `{"topic":"bees"}`, "ok: # Research Report: bees\n…- Stage 4: Generating report ✓\n…") // a task
	u.equal("resources", u.resources(), "demo://resource/static/document/architecture.md demo://resource/static/document/extension.md demo://resource/static/document/features.md "+
		"demo://resource/static/document/how-it-works.md demo://resource/static/document/instructions.md demo://resource/static/document/startup.md demo://resource/static/document/structure.md")
	u.equal("templates", u.templates(), "demo://resource/dynamic/text/{resourceId} demo://resource/dynamic/blob/{resourceId}")
	u.resource("demo://resource/static/document/structure.md", ": Resource demo://resource/static/document/structure.md:\n# Everything Server - Project Structure\n…")
	u.resource("demo://resource/dynamic/text/7", ": Resource demo://resource/dynamic/text/7:\nResource 7: This is a plaintext resource created at …")
	u.resource("demo://resource/dynamic/blob/7", ":  [file text/plain UmVzb3VyY2Ug]")
	u.resource("demo://nowhere", "mcp: MCP server \"it\": resources/read: …not found (code -32602)")
	u.equal("prompts", u.prompts(), "simple-prompt args-prompt completable-prompt resource-prompt")
	u.prompt("simple-prompt", nil, "user: This is a simple prompt without arguments.")
	u.prompt("args-prompt", map[string]string{"city": "Ghent"}, "user: What's weather in Ghent?")
	u.prompt("resource-prompt", map[string]string{"resourceType": "Text", "resourceId": "2"},
		"user: This prompt includes the Text resource with id: 2. Please analyze the following resource:\nuser: Resource demo://resource/dynamic/text/2:\nResource 2: This is a plaintext resource created at …")
	u.prompt("args-prompt", nil, "mcp: MCP server \"it\": prompts/get: MCP error -32602: Invalid arguments for prompt args-prompt: …")
	u.complete("completable-prompt", "department", "E", "Engineering")
}

func filesystem(u *use) {
	folder := filepath.Join(u.work, "files")
	path := func(name string) string { return fmt.Sprintf("%q", filepath.Join(folder, name)) }
	u.equal("tools", u.names(), "read_file read_text_file read_media_file read_multiple_files write_file edit_file create_directory list_directory list_directory_with_sizes "+
		"directory_tree move_file search_files get_file_info list_allowed_directories")
	u.call("read_text_file", `{"path":`+path("notes.txt")+`}`, "ok: first line\nsecond line\n")
	u.call("read_text_file", `{"path":`+path("notes.txt")+`,"head":1}`, "ok: first line")
	u.call("read_media_file", `{"path":`+path("dot.png")+`}`, "ok:  [image image/png iVBORw0KGgoA]")
	u.call("write_file", `{"path":`+path("new.txt")+`,"content":"new"}`, "ok: Successfully wrote to "+folder+"/new.txt")
	u.call("list_directory", `{"path":`+path("")+`}`, "ok: [FILE] dot.png\n[FILE] new.txt\n[FILE] notes.txt")
	// The root of the client takes the place of the folder in the arguments. The gateway has no
	// root: the server asks outside of a call.
	root := u.work
	if u.transport == gateway {
		root = folder
	}
	u.call("read_text_file", `{"path":"/etc/hostname"}`, "error: Access denied - path outside allowed directories: /etc/hostname not in "+root)
	u.call("read_text_file", `{"path":`+path("none.txt")+`}`, "error: ENOENT: no such file or directory, open '"+folder+"/none.txt'")
	u.equal("the new file", content(filepath.Join(folder, "new.txt")), "new")
}

func memory(u *use) {
	u.equal("tools", u.names(), "create_entities create_relations add_observations delete_entities delete_observations delete_relations read_graph search_nodes open_nodes")
	u.call("create_entities", `{"entities":[{"name":"Ada","entityType":"person","observations":["wrote a program"]}]}`,
		"ok: [\n  {\n    \"name\": \"Ada\",\n    \"entityType\": \"person\",\n    \"observations\": [\n      \"wrote a program\"\n    ]\n  }\n]")
	u.call("search_nodes", `{"query":"program"}`, "ok: {\n  \"entities\": [\n    {\n      \"name\": \"Ada\",…\"relations\": []\n}")
	u.equal("resources", u.resources(), "memory://knowledge-graph")
	u.resource("memory://knowledge-graph", ": Resource memory://knowledge-graph:\n{…\"name\": \"Ada\"…}")
	u.call("delete_entities", `{"entityNames":["Ada"]}`, "ok: Entities deleted successfully")
	u.call("read_graph", `{}`, "ok: {\n  \"entities\": [],\n  \"relations\": []\n}")
	u.call("create_entities", `{"entities":"Ada"}`, "error: The arguments of create_entities are invalid, so it did not run:\n/entities: must be array, is string\n…")
}

func clock(u *use) {
	u.equal("tools", u.names(), "current_time relative_time days_in_month get_timestamp convert_time get_week_year")
	u.call("convert_time", `{"sourceTimezone":"UTC","targetTimezone":"Asia/Tokyo","time":"2026-01-02 03:04:05"}`,
		"ok: Current time in UTC is 2026-01-02 03:04:05, and the time in Asia/Tokyo is 2026-01-02 12:04:05. The time difference is 9 hours.")
	u.call("days_in_month", `{"date":"2024-02-01"}`, "ok: The number of days in month is 29.")
	u.call("convert_time", `{"sourceTimezone":"UTC","targetTimezone":"Mars/Base","time":"2026-01-02 03:04:05"}`, "error: Invalid time zone specified: Mars/Base")
}

func tasks(u *use) {
	u.equal("tools", u.names(), "request_planning get_next_task mark_task_done approve_task_completion approve_request_completion open_task_details list_requests add_tasks_to_request update_task delete_task")
	u.call("request_planning", `{"originalRequest":"bake","tasks":[{"title":"mix","description":"Mix flour and water."}]}`,
		"ok: {\n  \"status\": \"planned\",\n  \"requestId\": \"req-1\",\n  \"totalTasks\": 1,…| task-1 | mix | Mix flour and water. | 🔄 In Progress | ⏳ Pending |\\n\"\n}")
	u.call("open_task_details", `{"taskId":"task-1"}`, "ok: {\n  \"status\": \"task_details\",…\"done\": false,…}")
	u.call("mark_task_done", `{"requestId":"req-1","taskId":"task-9"}`, "ok: {\n  \"status\": \"error\",\n  \"message\": \"Task not found\"\n}")
	u.call("mark_task_done", `{"requestId":"req-1"}`, "error: The arguments of mark_task_done are invalid, so it did not run:\n…")
}

// charts draws nothing: the server would need the internet for that.
func charts(u *use) {
	u.equal("tools", u.names(), "generate_area_chart generate_bar_chart …generate_word_cloud_chart generate_spreadsheet")
	u.call("generate_pie_chart", `{"data":[]}`, "error: The arguments of generate_pie_chart are invalid, so it did not run:\n/data: must have at least 1 items, has 0\n…")
	u.call("generate_pie_chart", `{"data":[{"category":"a","value":1}]}`, "error: The server \"it\" refused the call: MCP error -32603: Failed to generate chart: …")
}

func content(path string) string {
	b, err := os.ReadFile(path) //nolint:gosec // a file of this program
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func (u *use) resources() string {
	var out []string
	list, err := u.servers.Resources(u.ctx)
	if err != nil {
		return err.Error()
	}
	for _, r := range list {
		out = append(out, r.URI)
	}
	return strings.Join(out, " ")
}

func (u *use) templates() string {
	var out []string
	list, err := u.servers.Templates(u.ctx)
	if err != nil {
		return err.Error()
	}
	for _, r := range list {
		out = append(out, r.Template)
	}
	return strings.Join(out, " ")
}

func (u *use) prompts() string {
	var out []string
	list, err := u.servers.Prompts(u.ctx)
	if err != nil {
		return err.Error()
	}
	for _, p := range list {
		out = append(out, p.Name)
	}
	return strings.Join(out, " ")
}

// resource reads a resource and compares its content.
func (u *use) resource(uri, want string) {
	got, err := u.servers.ReadResource(u.ctx, "it", uri)
	text := parts(got)
	if err != nil {
		text = err.Error()
	}
	u.equal("resource "+uri, text, want)
}

// prompt gets a prompt and compares its messages.
func (u *use) prompt(name string, args map[string]string, want string) {
	got, err := u.servers.GetPrompt(u.ctx, "it", name, args)
	text := ""
	for _, m := range got {
		text += string(m.Role) + parts(m.Parts) + "\n"
	}
	if err != nil {
		text = err.Error()
	}
	u.equal(fmt.Sprintf("prompt %s %v", name, args), strings.TrimSuffix(text, "\n"), want)
}

// complete compares the suggestions for an argument of a prompt.
func (u *use) complete(prompt, argument, value, want string) {
	c, err := u.servers.Complete(u.ctx, "it", prompt, argument, value, nil)
	text := strings.Join(c.Values, " ")
	if err != nil {
		text = err.Error()
	}
	u.equal("completion of "+prompt, text, want)
}
