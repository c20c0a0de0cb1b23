// Package sim provides simulated models that need no network. They run in process, are
// deterministic, and can be served over HTTP in every dialect.
//
//	model, err := sim.Open("sim/planner")
//	resp, err := model.Generate(ctx, req) // calls the tools of req that its prompt mentions
//
// There are three models:
//
//   - [Planner] picks tools by the words of the prompt and fills in their arguments.
//   - [Echo] repeats the last message.
//   - [Scenario] plays a script.
//
// All of them are deterministic. Ids are derived from a seed and the conversation. Usage is
// counted at four bytes per token. A response comes at once, unless a [Pace] is set. In a
// stream, each text delta is one token; Generate returns what the stream collects to.
//
// [Handler] serves the models over HTTP in every dialect, so that any client can use them:
//
//	http.ListenAndServe("127.0.0.1:8080", sim.Handler(sim.Config{}))
//
// The package is for trying out and testing programs, and for testing this module. It is not
// a substitute for a model, and not a way to evaluate one.
//
// # Stored responses
//
// Like the Responses API, [Handler] stores responses unless "store" is false, in memory.
// Clients can retrieve, list, delete and continue them, refer to their items, and create
// and extend conversations. An unknown id is an error that names it, as at api.openai.com,
// so that a client or gateway that sends a bad reference fails here, too.
//
// # Faults
//
// Real servers have quirks that break clients. The simulator can produce each of the stream
// quirks (C1 to C41) on demand, by its id. It can also produce failures: a connection that
// is cut or stalls, statuses 429, 500 and 529, an error with status 200, and bodies that are
// empty, HTML, malformed or truncated. [Faults] lists them, each with what a correct client
// does with it. A client requests a fault after the name of the model,
//
//	sim/planner?fault=c2
//
// with the header "X-Dragoman-Fault", or with "fault" in the URL. [Config].Fault sets a fault
// for all requests.
//
// # Real traffic
//
// A [Recorder] records the traffic between a client and a real server, without credentials.
// A [Replayer] replays it and refuses requests that are not in it. Both are transports of an
// HTTP client:
//
//	model := &provider.Client{…, HTTP: &http.Client{Transport: replayer}}
//
// A program must send the same requests each time, including the URL and its port. An agent
// puts random bytes around tool results as a fence. To make its requests repeatable, set a
// fixed Random on its runner, both to record and to replay: &tool.Runner{Random: zeros{}},
// where zeros.Read fills its buffer with zeros.
//
// # Scenarios
//
// A script is a list of turns. A turn begins with a line "turn" and a title. The lines below
// it say when the turn applies and what the model responds. Indentation is free. Blank lines
// and lines that begin with # are ignored.
//
//	turn the user asks
//	  match turn 1
//	  match user coat
//	  think The weather decides that.
//	  say Let me look.
//	  call get_weather {"city": "Oslo"}
//
//	turn the weather came
//	  match result /\d+ °C/
//	  say Take a coat.
//	  usage input=120 output=8
//
// Conditions. The model plays the first turn whose match lines all hold. The last user
// message still matches after tool results have arrived: without "match turn 1", or without
// the turn for the results before it, the turn above would call its tool forever.
//
//	match user TEXT      the last user message contains the text, ignoring case
//	match system TEXT    the instructions contain the text
//	match result TEXT    the conversation ends with results, and one contains the text
//	match tool TEXT      the request has a tool with the text in its name
//	match model TEXT     the name of the model contains the text
//	match turn N         this is the model's N-th turn in the conversation, from 1
//	match any            always
//
// A text between slashes is a regular expression. An empty text always matches. A turn
// without match lines applies by its position: the second turn of the script is the model's
// second turn.
//
// Content, in the order of the lines:
//
//	think TEXT           reasoning
//	say TEXT             text
//	refuse TEXT          a refusal
//	call NAME INPUT      a tool call. INPUT is a JSON object for a function, and may be
//	                     omitted if it is empty. Any other text is the input of a freeform
//	                     tool, or of a function with a single text parameter. "space.name"
//	                     is the tool of a namespace, or the tool "space__name" in dialects
//	                     without namespaces.
//	stop REASON          the stop reason, if it does not follow from the content: stop,
//	                     tool_calls, length, stop_sequence, content_filter, refusal, pause,
//	                     malformed_tool_call
//	usage input=N output=N reasoning=N cache_read=N cache_write=N
//	pace first=200ms rate=50
//	error CLASS status=N retry=2s MESSAGE
//
// Consecutive lines of think, say or refuse are lines of one text. A text or input of several
// lines starts with <<WORD at the end of the line and ends before a line with only WORD. An
// error alone is the whole response; after other lines it breaks the stream. CLASS is a
// [dragoman.ErrorClass]; status and retry are optional.
package sim
