package rpc

// Codes of errors. Codes from CodeHeaderMismatch down to -32099 belong to the specification of
// MCP.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603

	// CodeHeaderMismatch, CodeMissingCapability and CodeUnsupportedRevision came with
	// 2026-07-28: only servers of that revision or a later one send them.
	CodeHeaderMismatch      = -32020
	CodeMissingCapability   = -32021
	CodeUnsupportedRevision = -32022

	// CodeResourceNotFound is for revisions before 2026-07-28, CodeURLElicitation only for
	// 2025-11-25.
	CodeResourceNotFound = -32002
	CodeURLElicitation   = -32042
)

// Reserved keys of _meta.
const (
	MetaProgressToken      = "progressToken"
	MetaRevision           = "io.modelcontextprotocol/protocolVersion"
	MetaClientInfo         = "io.modelcontextprotocol/clientInfo"
	MetaClientCapabilities = "io.modelcontextprotocol/clientCapabilities"
	MetaLogLevel           = "io.modelcontextprotocol/logLevel"
	MetaServerInfo         = "io.modelcontextprotocol/serverInfo"
	MetaSubscriptionID     = "io.modelcontextprotocol/subscriptionId"
	MetaRelatedTask        = "io.modelcontextprotocol/related-task"
	MetaImmediateResponse  = "io.modelcontextprotocol/model-immediate-response"
)

// Methods that a transport treats specially.
const (
	MethodInitialize  = "initialize"
	MethodInitialized = "notifications/initialized"
	MethodCancelled   = "notifications/cancelled"
	MethodListen      = "subscriptions/listen"
)
