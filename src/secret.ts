// A value that must never be printed: PANs, CVVs, private keys, API keys. It prints a mask wherever it lands
// (templates, JSON, util.inspect), so that a careless log line shows stars. It isn't encryption.
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
