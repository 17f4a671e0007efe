// The HTTP format of a third-party tokeniser, as configuration: paths, a body with placeholders, and where token and
// error are in an answer. The default is the format of `tokenmill simulate scheme`. Templates have no expressions and
// no scripts.
import { z } from 'zod'
import { PROVIDER_REFUSALS } from './provider.ts'

/** A JSON pointer (RFC 6901). */
const pointer = z.string().regex(/^(\/([^~/]|~[01])*)*$/, 'must be a JSON pointer')
const endpoint = z.strictObject({
  method: z.enum(['GET', 'POST', 'PUT', 'DELETE']),
  /** May hold {id} and {token}, which are percent-encoded. */
  path: z.string().regex(/^\/[!-~]{0,255}$/, 'must begin with a slash'),
})

const DEFAULT_BODY = {
  reference: '{id}',
  card: {
    number: '{pan}',
    expiryMonth: '{expiry_month}',
    expiryYear: '{expiry_year}',
    holderName: '{card_holder_name}',
  },
}

export const ThirdPartyFormat = z.strictObject({
  create: endpoint.default({ method: 'POST', path: '/tokens' }),
  find: endpoint.default({ method: 'GET', path: '/tokens?reference={id}' }),
  delete: endpoint.default({ method: 'DELETE', path: '/tokens/{token}' }),
  /** The header that carries the provisioning's id, by which the third party recognises a repeat. */
  idempotencyHeader: z
    .string()
    .regex(/^[A-Za-z0-9-]{1,64}$/)
    .default('Idempotency-Key'),
  /**
   * Any JSON. Its texts may hold {id}, {pan}, {expiry_month} (MM), {expiry_year} (YYYY), {expiry_yy},
   * {card_holder_name}.
   */
  body: z.json().default(DEFAULT_BODY),
  token: pointer.default('/token'),
  /** If the answer to `find` is a list, where its only element is: `/0`, `/items/0`. */
  found: pointer.default(''),
  error: pointer.default('/error/code'),
  /** Maps the third party's error codes to tokenmill's. */
  errors: z.record(z.string().max(64), z.enum([...PROVIDER_REFUSALS, 'again', 'once'])).default({}),
})
export type ThirdPartyFormat = z.infer<typeof ThirdPartyFormat>
type Json = ThirdPartyFormat['body']

/**
 * `template` with its placeholders filled in. A member that consists of one placeholder without a value is left out; an
 * item of a list becomes null.
 */
export function fillTemplate(template: Json, values: Readonly<Record<string, string | undefined>>): Json | undefined {
  if (typeof template === 'string') return fillText(template, values)
  if (Array.isArray(template)) return template.map(item => fillTemplate(item, values) ?? null)
  if (typeof template !== 'object' || template === null) return template
  const filled = Object.entries(template).flatMap(([key, value]): [string, Json][] => {
    const one = fillTemplate(value, values)
    return one === undefined ? [] : [[key, one]]
  })
  return Object.fromEntries(filled)
}

const PLACEHOLDER = /\{([a-z_]+)\}/g

function fillText(template: string, values: Readonly<Record<string, string | undefined>>): string | undefined {
  const only = /^\{([a-z_]+)\}$/.exec(template)?.[1]
  if (only !== undefined && only in values) return values[only]
  return template.replace(PLACEHOLDER, (whole, key: string) => (key in values ? (values[key] ?? '') : whole))
}

/** A path with its placeholders filled in, percent-encoded. */
export function fillPath(template: string, values: Readonly<Record<string, string>>): string {
  return template.replace(PLACEHOLDER, (whole, key: string) => {
    const value = values[key]
    return value === undefined ? whole : encodeURIComponent(value)
  })
}

/** The value to which the JSON pointer `at` points; undefined if there is none. */
export function pick(json: unknown, at: string): unknown {
  let value = json
  for (const part of at.split('/').slice(1)) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~')
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined
    value = (value as Record<string, unknown>)[key]
  }
  return value
}
