// A value that must never be printed: PANs, CVVs, private keys, API keys. In templates, JSON and util.inspect it prints a
// mask, so that a careless log line reveals nothing. It isn't encryption.
import { inspect } from 'node:util'

const MASK = '[secret]'

export class Secret<T = string> {
  readonly #value: T

  constructor(value: T) {
    this.#value = value
  }

  /** The value itself. Every call is a place to review. */
  reveal(): T {
    return this.#value
  }

  toString(): string {
    return MASK
  }

  toJSON(): string {
    return MASK
  }

  [inspect.custom](): string {
    return MASK
  }
}
