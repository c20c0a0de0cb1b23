package gateway

// Routes is the route table, for tests.
type Routes = routeTable

// NewRoutes returns the route table of a list.
func NewRoutes(list []Route) (*Routes, error) { return newRouteTable(list) }
