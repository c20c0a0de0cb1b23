package tool

// Exported for the tests in package tool_test.

var CheckNames = checkNames

type Named = toolIdentity

var Winners = winners
