// Package brief shortens and hashes texts, and caches parsed ones.
package brief
