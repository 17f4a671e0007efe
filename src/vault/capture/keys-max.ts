// The most keys of a line whose private halves aren't destroyed. It is in a file of its own, so that a process that
// decrypts nothing doesn't load what decrypts.

/**
 * A card whose message names no key of its line is tried with each, so it costs at most this many private-key
 * operations.
 */
export const KEYS_MAX = 4
