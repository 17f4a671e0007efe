// Reads what a browser brings back from a challenge: a form whose field `cres` holds a CRes, or an Erro message. Only
// the ids that say which authentication it is are read, and they are compared exactly. Anything else may have any form,
// because it decides nothing: the message isn't signed, so the outcome is the one that the directory server sent.
import { z } from 'zod'

const id = () => z.string().trim().toLowerCase().pipe(z.guid())

/**
 * The ids of the authentication: `threeDSServerTransID` says which one, `acsTransID` says that the message is from its
 * access control server. Every version requires both in a CRes; in an Erro message the second may be absent.
 */
const BrowserReturn = z
  .object({
    messageType: z.unknown().optional(),
    threeDSServerTransID: id(),
    acsTransID: z.preprocess(value => (value === null || value === '' ? undefined : value), id().optional()),
  })
  .refine(({ messageType, acsTransID }) => acsTransID !== undefined || messageType === 'Erro')
export type BrowserReturn = z.infer<typeof BrowserReturn>

/** The standard posts both messages in `cres`; some servers post an Erro message in a field of its own. */
const FIELDS = ['cres', 'erro', 'error'] as const

/** The field of the form that holds the message; '' if there is none. `form`: the text of the form, or its fields. */
export function returnText(form: unknown): string {
  const entries = typeof form === 'string' ? [...new URLSearchParams(form)] : Object.entries(form ?? {})
  for (const field of FIELDS)
    for (const [name, value] of entries)
      if (name.toLowerCase() === field && typeof value === 'string' && value.trim() !== '') return value
  return ''
}

/** Reads the message; undefined if the ids aren't there. */
export function readReturn(text: string): BrowserReturn | undefined {
  for (const json of readings(unescaped(text.trim()))) {
    const found = BrowserReturn.safeParse(parsed(json))
    if (found.success) return found.data
  }
  return undefined
}

/**
 * The texts that can be meant. Buffer takes base64 and base64url, with any padding, and skips white space. But a blank
 * can also be a `+` that was posted unescaped.
 */
function* readings(text: string): Generator<string> {
  yield decoded(text.replaceAll(' ', '+'))
  yield decoded(text)
  // Not encoded at all.
  yield text
}

const decoded = (text: string) => new TextDecoder().decode(Buffer.from(text, 'base64'))

/** Undoes an escaping for URLs beyond the form's own: `%2B`, `%3D`. */
function unescaped(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function parsed(json: string): unknown {
  try {
    // Control characters are either white space, or stand unescaped in a text that isn't used.
    return JSON.parse(json.replaceAll(/\p{Cc}/gu, ' '))
  } catch {
    return undefined
  }
}
