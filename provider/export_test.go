package provider

// Clock and Timer let tests set the time.
type (
	Clock = clock
	Timer = timer
)

// OnClock sets the clock of a client.
func OnClock(clock Clock, c *Client) *Client {
	c.testClock = clock
	return c
}

// HasClock reports whether a test set the clock.
func (c *Client) HasClock() bool { return c.testClock != nil }

// SetClock sets the clock of the clients of a config.
func (c *Config) SetClock(clock Clock) { c.testClock = clock }

// HealthOn sets the clock of h.
func HealthOn(clock Clock, h *Health) *Health {
	h.testClock = clock
	return h
}
