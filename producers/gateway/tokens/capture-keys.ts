// The route of the public keys to which web pages and SDKs encrypt cards. It needs no credentials.
import { z } from 'zod'
import { uuid } from '../../../src/job/envelope/text.ts'
import * as captureKeys from '../../../src/store/access/capture-keys.ts'
import type { GatewayApp } from '../app.ts'
import type { GatewayDeps } from '../deps.ts'
import { ERRORS } from './records.ts'

const Query = z.strictObject({
  entity_id: uuid().describe('UUID of the merchant entity whose tokens the cards are for.'),
})

const PublicJwk = z.looseObject({ kty: z.string() })

/** A JWKS (RFC 7517) with one more member. */
const CaptureKeys = z.strictObject({
  keys: z
    .array(PublicJwk.extend({ kid: z.string(), use: z.literal('enc'), alg: z.string() }))
    .describe('Keys for JWE, as JWKs; `kid` is the alias.'),
  openpgp: z.array(z.strictObject({ alias: z.string(), public_key: z.string() })).describe('Keys for OpenPGP.'),
})

/** How long browsers may cache the keys, in seconds; a retired key still decrypts cards for eight days. */
const BELIEVED_S = 60

export function captureKeyRoutes(app: GatewayApp, { store }: GatewayDeps): void {
  app.route({
    method: 'GET',
    url: '/oidc/.well-known/capture-keys',
    config: { access: 'public' },
    schema: {
      operationId: 'getCaptureKeys',
      summary: "An entity's active capture keys, the newest first",
      tags: ['Capture keys'],
      querystring: Query,
      response: { 200: CaptureKeys, 400: ERRORS[400], 429: ERRORS[429], 500: ERRORS[500] },
    },
    handler: async ({ query }, reply) => {
      const active = (await captureKeys.list(store, query.entity_id)).filter(key => key.state === 'ACTIVE').reverse()
      reply.header('access-control-allow-origin', '*')
      reply.header('cross-origin-resource-policy', 'cross-origin')
      reply.header('cache-control', `public, max-age=${BELIEVED_S}`)
      return reply.code(200).send({
        keys: active.filter(key => key.type !== 'pgp').map(jwkOf),
        openpgp: active.filter(key => key.type === 'pgp').map(key => ({ alias: key.alias, public_key: key.publicKey })),
      })
    },
  })
}

function jwkOf({ alias, type, publicKey }: captureKeys.CaptureKeyInfo): z.infer<typeof CaptureKeys>['keys'][number] {
  const jwk = PublicJwk.parse(JSON.parse(publicKey))
  return { ...jwk, kid: alias, use: 'enc', alg: type === 'jwe-rsa' ? 'RSA-OAEP-256' : 'ECDH-ES' }
}
