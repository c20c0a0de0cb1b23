package tool

// Names for the tests of the package.

var CheckNames = checkNames

type Named = toolIdentity

var Winners = winners
