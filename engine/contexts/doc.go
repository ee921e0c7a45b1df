// Package contexts builds what the reader of a conversation sees, and rebuilds the requests that were sent. It knows
// neither crews nor runs: their readers are resolved by functions that it is given.
package contexts
