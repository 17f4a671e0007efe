// Cuts a JSON document into the elements of one of its arrays, by bytes and in bounded memory. The rest of the document
// is skipped, and elements aren't parsed here. Throws only if the document can't be cut.
import { AroundArray } from './around-array.ts'
import { broken, isBlank, JSON_BYTES as J, type Taken } from './marks.ts'
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
