package gateway

import "time"

// LimitSockets replaces limits of WebSocket connections; 0 keeps one.
func (g *Gateway) LimitSockets(message int64, lifetime, ping time.Duration) {
	if message > 0 {
		g.socketLimits.message = message
	}
	if lifetime > 0 {
		g.socketLimits.lifetime = lifetime
	}
	if ping > 0 {
		g.socketLimits.ping = ping
	}
}
