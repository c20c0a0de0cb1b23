package wire

// Provider is a built-in provider of the vendor.
type Provider struct {
	// Names of the provider; the first is its own.
	Names []string
	// Server is the provider whose server this is, by which extensions identify it;
	// empty means its own. Headers are those of that provider.
	Server string
	// KeyEnv and BaseEnv are environment variables with its key and base URL.
	KeyEnv, BaseEnv []string
	// KeyHeader is the header for the key; empty means a bearer token. Keyless servers work
	// without one.
	KeyHeader string
	Keyless   bool
	// TokenEnv is a variable with a bearer token, which is used if the variables of the
	// key are not set.
	TokenEnv string
	// AccessToken means that the key is an access token, which is renewed.
	AccessToken bool
	// Signature is the name of the service in the AWS signature of a request; empty means
	// that requests are not signed.
	Signature string
	// Headers are sent if their variables are set.
	Headers []HeaderEnv
	// CompleteBase returns the URL for the value of a setting or a variable, which may
	// be a short form. Nil means that the value is the URL.
	CompleteBase func(string) string
	// Place describes how the base URL follows from settings; nil means the vendor's
	// base URL.
	Place *Place
}

// HeaderEnv is a header whose value is in an environment variable.
type HeaderEnv struct{ Name, Env string }

// Place builds the base URL of a provider that has one for each region or project.
type Place struct {
	// Settings are the settings that name the place, in the order of the documentation.
	Settings []PlaceSetting
	// Path and StreamPath are relative to the base URL; empty means those of the
	// endpoint.
	Path, StreamPath string
	// BaseURL returns the base URL for the values of the settings. host is the value of
	// a variable of BaseEnv; empty means the vendor's host. missing is the name of a
	// required setting without a value.
	BaseURL func(host string, value func(setting string) string) (base, missing string)
}

// PlaceSetting is a setting: "region", "project" or "location".
type PlaceSetting struct {
	Name string
	// Env are the variables that hold its value if the setting is empty.
	Env []string
}
