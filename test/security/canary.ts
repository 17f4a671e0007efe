// Makes card numbers to search for, and searches texts for them: as plain digits, with other characters between the
// digits, in base64 at each of its three alignments, and in hex.
import { createHash } from 'node:crypto'

export interface Canary {
  name: string
  pan: string
}

/** A number of a test BIN; its further digits follow from `name`, and its last one is the check digit. */
export function canary(name: string, bin = '40000073', length = 16): Canary {
  const body = `${bin}${digitsOf(name)}`.slice(0, length - 1)
  return { name, pan: body + checkDigit(body) }
}

/** The same card with a wrong check digit. */
export function misspelt({ name, pan }: Canary): Canary {
  return { name: `${name}, misspelt`, pan: `${pan.slice(0, -1)}${(Number(pan.slice(-1)) + 5) % 10}` }
}

/** Card numbers with the same BIN and last four, as somebody who guesses would try them. */
export function guesses(bin: string, lastFour: string, count: number): string[] {
  const found: string[] = []
  for (let middle = 0; found.length < count; middle += 1) {
    const pan = `${bin}${String(middle).padStart(12 - bin.length, '0')}${lastFour}`
    if (pan.endsWith(checkDigit(pan.slice(0, -1)))) found.push(pan)
  }
  return found
}

function digitsOf(name: string): string {
  const hash = createHash('sha256').update(name).digest()
  return [...hash].map(byte => byte % 10).join('')
}

export function checkDigit(body: string): string {
  const digits = [...body].reverse().map(Number)
  const sum = digits.reduce((all, digit, index) => {
    const value = index % 2 === 0 ? digit * 2 : digit
    return all + (value > 9 ? value - 9 : value)
  }, 0)
  return String((10 - (sum % 10)) % 10)
}

/** A place to search: its content as text. */
export interface Place {
  name: string
  text: string
}

export interface Hit {
  canary: string
  place: string
  as: string
  /** The text around it, with masked digits. */
  near: string
}

/**
 * Every trace of these cards. The first and the last digits may be shown, so only the middle digits are searched for.
 */
export function findTraces(canaries: readonly Canary[], places: readonly Place[]): Hit[] {
  const needles = canaries.flatMap(({ name, pan }) =>
    formsOf(pan.slice(4, -2)).map(form => ({ ...form, canary: name })),
  )
  return places.flatMap(({ name: place, text }) => {
    const joined = text.replaceAll(/(?<=\d)[ ._/\\-]{1,2}(?=\d)/g, '')
    return needles.flatMap(({ canary, as, needle }) => {
      if (as === 'separated' && text.includes(needle)) return []
      const where = as === 'separated' ? joined : text
      const at = where.indexOf(needle)
      return at < 0 ? [] : [{ canary, place, as, near: around(where, at, needle) }]
    })
  })
}

/**
 * Finds security codes: as the value of "cvv" in every form, or where no digit, letter or similar character is beside
 * the code. The codes begin with a zero, so no number is written like one.
 */
export function findCodes(codes: readonly string[], places: readonly Place[]): Hit[] {
  return places.flatMap(({ name: place, text }) =>
    codes.flatMap(code => {
      const alone = new RegExp(`(?<![0-9A-Za-z.:_+/=-])${code}(?![0-9A-Za-z:_+/=-])`)
      const hits = [...formsOf(`"cvv":"${code}"`), ...formsOf(`"cvv":${code}`)]
        .map(({ as, needle }) => ({ as, at: text.indexOf(needle), needle }))
        .concat({ as: 'alone', at: text.search(alone), needle: code })
      return hits.flatMap(({ as, at, needle }) =>
        at < 0 ? [] : [{ canary: `cvv ${code}`, place, as, near: around(text, at, needle) }],
      )
    }),
  )
}

function formsOf(plain: string): { as: string; needle: string }[] {
  const base64 = (['base64', 'base64url'] as const).flatMap(encoding =>
    [0, 1, 2].map(shift => {
      const bytes = Buffer.from(' '.repeat(shift) + plain)
      // Characters that also depend on neighbouring bytes are cut off.
      const needle = bytes.toString(encoding).slice(Math.ceil((shift * 4) / 3), Math.floor((bytes.length * 4) / 3))
      return { as: `${encoding} at ${shift}`, needle }
    }),
  )
  const hex = Buffer.from(plain).toString('hex')
  return [
    { as: 'digits', needle: plain },
    { as: 'separated', needle: plain },
    ...base64,
    { as: 'hex', needle: hex },
    { as: 'HEX', needle: hex.toUpperCase() },
  ]
}

function around(text: string, at: number, needle: string): string {
  const mask = (part: string) => part.replaceAll(/[\n\r]/g, ' ')
  return `${mask(text.slice(Math.max(0, at - 80), at))}<found>${mask(text.slice(at + needle.length, at + needle.length + 40))}`
}
