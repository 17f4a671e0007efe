// A value that must never be printed: PANs, CVVs, private keys, API keys. Templates, JSON and util.inspect print a mask
// instead, so that a careless log line reveals nothing. The value isn't encrypted.
import { inspect } from 'node:util'

const MASK = '[secret]'

export class Secret<T = string> {
  readonly #value: T

  constructor(value: T) {
    this.#value = value
  }

  /** The value itself. Reviewers should check every call. */
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
