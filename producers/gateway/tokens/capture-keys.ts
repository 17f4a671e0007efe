// The route of the public keys to which web pages and SDKs encrypt cards. It needs no credentials.
import { z } from 'zod'
import { uuid } from '../../../src/job/envelope/text.ts'
import { JWE_ALG } from '../../../src/vault/jwe-key.ts'
import { ERRORS } from '../../http/messages/cards.ts'
import type { GatewayApp } from '../app.ts'
import { findCaptureKeys, type ProvedKey } from '../capture-keys.ts'
import type { GatewayDeps } from '../deps.ts'
import { OWN_BUCKET } from '../server/access.ts'

const Query = z.strictObject({
  entity_id: uuid().describe('UUID of the merchant entity whose tokens the cards are for.'),
})

const PublicJwk = z.looseObject({ kty: z.string() })

const statement = z
  .string()
  .optional()
  .describe('What the installation signed about the key (JWS): alias, entity, thumbprint, until when.')

/** A JWKS (RFC 7517) with two more members. */
const CaptureKeys = z.strictObject({
  keys: z
    .array(PublicJwk.extend({ kid: z.string(), use: z.literal('enc'), alg: z.string(), statement }))
    .describe('Keys for JWE, as JWKs; `kid` is the alias.'),
  openpgp: z
    .array(z.strictObject({ alias: z.string(), public_key: z.string(), statement }))
    .describe('Keys for OpenPGP.'),
  new_keys: z
    .array(z.string())
    .optional()
    .describe('Statements of signing keys that the installation announced, as results carry them.'),
})

/** The signing keys whose statements are shown, newest first. */
const STATEMENTS_MAX = 8

/** How long browsers may cache the keys, in seconds; a retired key still decrypts cards for eight days. */
const BELIEVED_S = 60

export function captureKeyRoutes(app: GatewayApp, deps: GatewayDeps): void {
  app.route({
    method: 'GET',
    url: '/oidc/.well-known/capture-keys',
    config: { access: 'public', rateLimit: OWN_BUCKET },
    // Before the limit of the rate: pages of any origin may read why they are refused.
    onRequest: async (_request, reply) => {
      reply.header('access-control-allow-origin', '*')
      reply.header('cross-origin-resource-policy', 'cross-origin')
    },
    schema: {
      operationId: 'getCaptureKeys',
      summary: "An entity's active capture keys, the newest first",
      tags: ['Capture keys'],
      querystring: Query,
      response: { 200: CaptureKeys, 400: ERRORS[400], 429: ERRORS[429], 500: ERRORS[500] },
    },
    handler: async ({ query }, reply) => {
      const found = await findCaptureKeys(deps, query.entity_id)
      const signing = (await deps.trusted.list()).slice(0, STATEMENTS_MAX)
      const newKeys = signing.flatMap(({ statement }) => statement ?? [])
      reply.header('cache-control', `public, max-age=${BELIEVED_S}`)
      return reply.code(200).send({
        keys: found.flatMap(jwkOf),
        openpgp: found.filter(({ key }) => key.type === 'pgp').map(armorOf),
        ...(newKeys.length > 0 ? { new_keys: newKeys } : {}),
      })
    },
  })
}

type Shown = z.infer<typeof CaptureKeys>

/** The public half as it was proved, without other members of the stored JWK. */
function jwkOf({ info: { alias, statement }, key }: ProvedKey): Shown['keys'] {
  if (key.type === 'pgp') return []
  const jwk = PublicJwk.parse(key.publicKey.export({ format: 'jwk' }))
  return [{ ...jwk, kid: alias, use: 'enc', alg: JWE_ALG[key.type], ...(statement === null ? {} : { statement }) }]
}

function armorOf({ info: { alias, publicKey, statement } }: ProvedKey): Shown['openpgp'][number] {
  return { alias, public_key: publicKey, ...(statement === null ? {} : { statement }) }
}
