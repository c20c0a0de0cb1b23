package gateway

// Tests look routes up.
type Routes = routeTable

// NewRoutes makes routes of a list.
func NewRoutes(list []Route) (*Routes, error) { return newRouteTable(list) }
