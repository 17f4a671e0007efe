// Begins the session of a person who proved who they are: a new cookie, and an end for the session that the browser had.
import type { FastifyReply, FastifyRequest } from 'fastify'
import * as sessions from '../../../src/store/console/sessions.ts'
import type { ConsoleDeps } from '../deps.ts'
import { makeCookie, readCookie, setCookie } from '../server/cookie.ts'

export async function beginSession(
  { store, site }: Pick<ConsoleDeps, 'store' | 'site'>,
  request: FastifyRequest,
  reply: FastifyReply,
  {
    personId,
    credentialId,
    identityId,
    isLocal,
  }: Pick<sessions.NewSession, 'personId' | 'credentialId' | 'identityId' | 'isLocal'>,
): Promise<void> {
  const former = readCookie(request.headers.cookie, site())
  if (former) await sessions.revoke(store, former)
  const { value, hash } = makeCookie()
  await sessions.insert(store, { sessionHash: hash, personId, credentialId, identityId, address: request.ip, isLocal })
  reply.header('set-cookie', setCookie(value, site()))
}
