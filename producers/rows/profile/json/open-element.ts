// The element of a JSON array whose end hasn't been read yet: finds its last byte and keeps its bytes, up to 1 MiB. It
// isn't checked here whether the element is valid JSON.
import { JSON_BYTES as J } from './marks.ts'

export const ELEMENT_BYTES_MAX = 1024 * 1024

export interface Element {
  /** The physical line of the element's first byte. */
  line: number
  /** Undefined for an element of more than 1 MiB, which isn't kept. */
  bytes: Buffer | undefined
}

const ORDINARY = 0
const SEPARATOR = 1
const QUOTED = 2
const ESCAPE = 3
const OPENING = 4
const CLOSING = 5
const KINDS = new Uint8Array(256)
for (const byte of [9, J.LF, 13, 32, J.COMMA, J.COLON]) KINDS[byte] = SEPARATOR
KINDS[J.QUOTE] = QUOTED
KINDS[J.BACKSLASH] = ESCAPE
for (const byte of [J.OPEN_BRACE, J.OPEN_BRACKET]) KINDS[byte] = OPENING
for (const byte of [J.CLOSE_BRACE, J.CLOSE_BRACKET]) KINDS[byte] = CLOSING

/**
 * What a byte does to the element: `on`: the element goes on; `end`: it ends with this byte; `ended`: it ended before
 * this byte.
 */
type Turn = 'on' | 'end' | 'ended'

export interface Scanned {
  at: number
  line: number
  ended: boolean
}

export class OpenElement {
  #open = false
  #line = 0
  #parts: Buffer[] = []
  #length = 0
  /** Where the element begins or continues in the current chunk. */
  #start = 0
  #depth = 0
  #inString = false
  #escaped = false

  get isOpen(): boolean {
    return this.#open
  }

  begin(at: number, line: number): void {
    this.#open = true
    this.#start = at
    this.#line = line
  }

  /** Reads to the end of the element or of the chunk. */
  scan(chunk: Buffer, from: number, firstLine: number): Scanned {
    let line = firstLine
    for (let at = from; at < chunk.length; at++) {
      const byte = chunk[at] as number
      const kind = KINDS[byte] as number
      if (kind === ORDINARY && !this.#escaped) continue
      const turn = this.#inString ? this.#inText(kind) : this.#between(kind)
      if (turn === 'ended') return { at, line, ended: true }
      if (byte === J.LF) line += 1
      if (turn === 'end') return { at: at + 1, line, ended: true }
    }
    return { at: chunk.length, line, ended: false }
  }

  #inText(kind: number): Turn {
    if (this.#escaped) this.#escaped = false
    else if (kind === ESCAPE) this.#escaped = true
    else if (kind === QUOTED) {
      this.#inString = false
      if (this.#depth === 0) return 'end'
    }
    return 'on'
  }

  #between(kind: number): Turn {
    if (kind === QUOTED) this.#inString = true
    else if (kind === OPENING) this.#depth += 1
    else if (kind === CLOSING) {
      // A number or a word ends before the byte that follows it.
      if (this.#depth === 0) return 'ended'
      this.#depth -= 1
      if (this.#depth === 0) return 'end'
    } else if (kind === SEPARATOR && this.#depth === 0) return 'ended'
    return 'on'
  }

  /** Keeps the element's part of the chunk. */
  keep(chunk: Buffer): void {
    if (!this.#open) return
    this.#length += chunk.length - this.#start
    if (this.#length > ELEMENT_BYTES_MAX) this.#parts = []
    else this.#parts.push(chunk.subarray(this.#start))
    this.#start = 0
  }

  /** The element, which ends before the index `end`. */
  finish(chunk: Buffer, end: number): Element {
    const last = chunk.subarray(this.#start, end)
    const tooLarge = this.#length + last.length > ELEMENT_BYTES_MAX
    const whole = () => (this.#parts.length === 0 ? last : Buffer.concat([...this.#parts, last]))
    const element = { line: this.#line, bytes: tooLarge ? undefined : whole() }
    this.#open = false
    this.#parts = []
    this.#length = 0
    return element
  }
}
