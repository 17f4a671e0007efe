// Cuts a JSON document into the elements of one of its arrays, by bytes and in bounded memory. The rest of the document
// is skipped, and elements aren't parsed here. Throws only if the document can't be cut.
import { FileError } from '../../file-error.ts'
import { shown } from '../../layout.ts'
import { broken, isBlank, JSON_BYTES as J, notJson, type Taken } from './marks.ts'
import { type Element, OpenElement } from './open-element.ts'

/** Yields the elements. `path`: the names of the members that lead to the array; empty if the document is the array. */
export async function* readElements(bytes: AsyncIterable<Buffer>, path: readonly string[]): AsyncGenerator<Element[]> {
  const around = new AroundArray(path)
  const array = new ArrayCutter()
  let within = false
  let line = 1
  for await (const chunk of bytes) {
    let failure: { error: unknown } | undefined
    try {
      for (let at = 0; at < chunk.length; ) {
        const taken = within ? array.take(chunk, at, line) : around.take(chunk, at, line)
        at = taken.at
        line = taken.line
        if (taken.crossed) within = !within
      }
    } catch (error) {
      failure = { error }
    }
    const elements = array.elementsOf(chunk)
    if (elements.length > 0) yield elements
    // The elements before the place count, wherever the pieces of the document end.
    if (failure) throw failure.error
  }
  if (within) throw broken(line, `breaks off within its array${array.lastBegan()}`)
  around.end(line)
}

/** Cuts the bytes within the array. An element that begins in one chunk may end in another. */
class ArrayCutter {
  readonly #element = new OpenElement()
  #elements: Element[] = []
  #expects: 'value or end' | 'value' | 'comma or end' = 'value or end'
  /** The line in which the last element begins; 0 for none. */
  #began = 0

  /** For a message: an element without its end takes in those that follow, so the fault may lie where it begins. */
  lastBegan(): string {
    return this.#began === 0 ? '' : `; its last element begins in line ${this.#began}`
  }

  /** Reads to the byte after the bracket that closes the array, or to the end of the chunk. */
  take(chunk: Buffer, from: number, firstLine: number): Taken {
    let line = firstLine
    for (let at = from; at < chunk.length; ) {
      if (this.#element.isOpen) {
        const scanned = this.#element.scan(chunk, at, line)
        if (scanned.ended) this.#elements.push(this.#element.finish(chunk, scanned.at))
        at = scanned.at
        line = scanned.line
        continue
      }
      const byte = chunk[at] as number
      if (byte === J.LF) line += 1
      if (isBlank(byte)) at += 1
      else if (!this.#isMark(byte, line)) {
        this.#element.begin(at, line)
        this.#began = line
      } else {
        at += 1
        if (byte === J.CLOSE_BRACKET) return { at, line, crossed: true }
      }
    }
    return { at: chunk.length, line, crossed: false }
  }

  /** The elements that end in this chunk. */
  elementsOf(chunk: Buffer): Element[] {
    this.#element.keep(chunk)
    const elements = this.#elements
    this.#elements = []
    return elements
  }

  /** True for a comma or the bracket that closes the array; false for the first byte of an element. */
  #isMark(byte: number, line: number): boolean {
    const afterValue = this.#expects === 'comma or end'
    if (byte === J.CLOSE_BRACKET && this.#expects !== 'value') return true
    if (byte === J.COMMA && afterValue) {
      this.#expects = 'value'
      return true
    }
    if (afterValue || MARKS.has(byte)) throw broken(line, `is not JSON within its array${this.lastBegan()}`)
    this.#expects = 'comma or end'
    return false
  }
}

const MARKS: ReadonlySet<number> = new Set([J.COMMA, J.COLON, J.CLOSE_BRACE, J.CLOSE_BRACKET])

const KEY_BYTES_MAX = 1_024
const KEYS_SHOWN_MAX = 20

/** Follows the document up to the array and after it; it keeps only the names of a few members. */
class AroundArray {
  readonly #path: readonly string[]
  /** Names of members of the document, for an error message. */
  readonly #names: string[] = []
  #begun = false
  #found = false
  #depth = 0
  /** How many of the open containers lead to the array. */
  #onPath = 0
  /** The next value leads to the array. */
  #leads: boolean
  #inString = false
  #escaped = false
  /** The bytes of the string before a colon, with its closing quote; undefined if there is none. */
  #text: number[] | undefined

  constructor(path: readonly string[]) {
    this.#path = path
    this.#leads = path.length === 0
  }

  /** Reads to the byte after the bracket that opens the array, or to the end of the chunk. */
  take(chunk: Buffer, from: number, firstLine: number): Taken {
    let line = firstLine
    for (let at = from; at < chunk.length; at++) {
      const byte = chunk[at] as number
      if (byte === J.LF) line += 1
      if (this.#inString) this.#takeText(byte)
      else if (!isBlank(byte) && this.#takeMark(byte, line)) return { at: at + 1, line, crossed: true }
    }
    return { at: chunk.length, line, crossed: false }
  }

  /** Call it once, at the end of the file. */
  end(line: number): void {
    if (!this.#begun) throw new FileError('input', 'The file is empty.', 'Check the export that made it.')
    if (this.#depth > 0) throw broken(line, 'breaks off before its end')
    if (this.#found) return
    const wrong = this.#path.length === 0 ? 'The document is no array.' : `The document has no array ${this.#shown()}.`
    const names = this.#names.length === 0 ? '' : ` Its members are ${this.#names.map(shown).join(', ')}.`
    throw new FileError('usage', wrong, `Correct format.records of the profile.${names}`)
  }

  #shown(): string {
    return shown(this.#path.join('.'))
  }

  #takeText(byte: number): void {
    if (this.#escaped) this.#escaped = false
    else if (byte === J.BACKSLASH) this.#escaped = true
    else if (byte === J.QUOTE) this.#inString = false
    if (this.#text !== undefined && this.#text.length < KEY_BYTES_MAX) this.#text.push(byte)
  }

  /** True if the array begins at this byte. */
  #takeMark(byte: number, line: number): boolean {
    if (byte === J.OPEN_BRACE || byte === J.OPEN_BRACKET) return this.#open(byte, line)
    if (!this.#begun) throw notJson(line)
    if (this.#depth === 0) throw broken(line, 'goes on behind its end')
    if (byte === J.QUOTE) {
      this.#inString = true
      this.#text = []
    } else if (byte === J.COLON) this.#name()
    else if (byte === J.COMMA) this.#leads = false
    else if (byte === J.CLOSE_BRACE || byte === J.CLOSE_BRACKET) this.#close()
    else if (!isScalar(byte)) throw notJson(line)
    return false
  }

  #open(byte: number, line: number): boolean {
    if (this.#begun && this.#depth === 0) throw broken(line, 'goes on behind its end')
    this.#begun = true
    const led = this.#leads
    this.#leads = false
    if (led && byte === J.OPEN_BRACKET && this.#depth === this.#path.length) {
      if (this.#found) throw broken(line, `has the array ${this.#shown()} twice`)
      this.#found = true
      return true
    }
    if (led && byte === J.OPEN_BRACE) this.#onPath = this.#depth
    this.#depth += 1
    return false
  }

  #close(): void {
    this.#depth -= 1
    this.#onPath = Math.min(this.#onPath, Math.max(this.#depth - 1, 0))
    this.#leads = false
  }

  /** A member's name ended: outside strings a colon follows each name and nothing else. */
  #name(): void {
    const name = this.#text && textOf(this.#text)
    this.#text = undefined
    if (name === undefined) return
    if (this.#depth === 1 && this.#names.length < KEYS_SHOWN_MAX) this.#names.push(name)
    this.#leads = this.#onPath === this.#depth - 1 && name === this.#path[this.#onPath]
  }
}

const isScalar = (byte: number) =>
  (byte >= 48 && byte <= 57) || (byte >= 97 && byte <= 122) || byte === 43 || byte === 45 || byte === 46 || byte === 69

/** The string; '' for bytes that aren't a JSON string, or that are longer than what is kept. */
function textOf(bytes: readonly number[]): string {
  try {
    const value: unknown = JSON.parse(`"${Buffer.from(bytes).toString('utf8')}`)
    return typeof value === 'string' ? value : ''
  } catch {
    return ''
  }
}
