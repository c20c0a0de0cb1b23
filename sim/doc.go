// Package sim is a model that needs no network: it runs in process, always
// answers the same, and speaks every dialect over HTTP.
//
//	model, err := sim.Open("sim/planner")
//	resp, err := model.Generate(ctx, req) // calls the tools of req that its prompt speaks of
//
// There are three models. [Planner] picks tools by the words of the prompt and
// fills their arguments. [Echo] says what it heard. A [Scenario] plays a script.
// All of them are deterministic: ids follow from a seed and from the
// conversation, usage is counted (four bytes are a token), and an answer comes at
// once unless a [Pace] is set. A stream has the text in fragments of a token each;
// Generate returns what the stream collects to.
//
// [Handler] serves them over HTTP in every dialect, so that any client can be
// tried on them:
//
//	http.ListenAndServe("127.0.0.1:8080", sim.Handler(sim.Config{}))
//
// It is not a judge of models, nor a substitute for one: it is there so that
// programs, and this module, can be tried and tested.
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
// Real servers have habits that break clients. Each of those that streams have
// (quirks C1 to C41) can be had on demand, under its id, and so can failures: a
// connection that is cut or stalls, statuses 429, 500 and 529, an error in a 200,
// bodies that are empty, HTML, malformed or truncated. [Faults] lists them with what
// a correct client makes of each. A fault is asked for behind the name of the model,
//
//	sim/planner?fault=c2
//
// by the header "X-Dragoman-Fault", by "fault" in the URL, or for all with
// [Config].Fault.
//
// # Real traffic
//
// A [Recorder] writes down what a client and a real server said to each other,
// without credentials; a [Replayer] plays it again, and refuses what is not in it. It
// is the transport of a client:
//
//	model := &provider.Client{…, HTTP: &http.Client{Transport: replayer}}
//
// What a program sends must be the same each time. The results of an agent's tools
// have a fence of random bytes around them: give its runner a fixed Random,
// &tool.Runner{Random: zeros{}}, where zeros.Read fills its buffer with zeros, to
// record as well as to replay. The URL counts too, with its port.
// The package conformance, below this one, tests models and dialects of your own.
//
// # Scenarios
//
// A script is a text of turns. A turn begins with a line "turn" and its title;
// the lines below say when it answers, and what. Lines are indented as you like,
// blank ones and those that begin with # mean nothing.
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
// When. The first turn answers all of whose match lines hold. What the user said
// last still holds when results have come: without "match turn 1", or the turn of the
// results before it, the turn above would call its tool for ever.
//
//	match user TEXT      the user's last words hold the text, in letters of any case
//	match system TEXT    the instructions do
//	match result TEXT    results have come last, and one of them holds the text
//	match tool TEXT      there is a tool with the text in its name
//	match model TEXT     the name of the model holds the text
//	match turn N         it is the model's N-th turn in the conversation, from 1
//	match any            always
//
// A text between slashes is a regular expression, and no text holds in any case. A
// turn without match lines answers in its place: the second of the script is the
// model's second turn.
//
// What, in the order of the lines:
//
//	think TEXT           reasoning
//	say TEXT             text
//	refuse TEXT          a refusal
//	call NAME INPUT      a tool call; a JSON object for a function, which may be left
//	                     out where it is empty, and any other text for a freeform tool,
//	                     or for a function that takes one text; "space.name" is the tool
//	                     of a namespace, or "space__name" where there are none
//	stop REASON          why the answer ends, where that does not follow from it:
//	                     stop, tool_calls, length, stop_sequence, content_filter,
//	                     refusal, pause, malformed_tool_call
//	usage input=N output=N reasoning=N cache_read=N cache_write=N
//	pace first=200ms rate=50
//	error CLASS status=N retry=2s MESSAGE
//
// Lines of think, say or refuse that follow each other are lines of one text. A
// text or input of several lines stands between <<WORD at the end of the line and
// a line that says WORD. An error that is all a turn has is the answer; behind
// other lines it breaks the stream. Its class is one of [dragoman.ErrorClass];
// status and retry may be left out.
package sim
