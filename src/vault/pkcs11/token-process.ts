// The process that speaks to a token for one process of ours, forked by token-client.ts. A module is code of the
// token's maker that blocks while it waits, keeps its state for the life of a process, and may crash: here it does that
// beside our work, and can be killed.
import { loadBinding } from './binding.ts'
import { openTokenSession, type TokenSession } from './session.ts'
import { TokenError } from './token-error.ts'
import type { TokenReply, TokenRequest } from './token-message.ts'

let session: TokenSession | undefined

async function answer(request: TokenRequest): Promise<TokenReply> {
  if ('open' in request) {
    const id = request.open.id && Buffer.from(request.open.id)
    session = await openTokenSession(loadBinding(), { ...request.open, id })
    return { id: session.id }
  }
  if (!session) throw new TokenError('away', 'no session is open')
  const bytes = Buffer.from(request.bytes)
  try {
    return { bytes: session[request.act](bytes, request.purpose) }
  } finally {
    bytes.fill(0)
  }
}

async function reply(request: TokenRequest): Promise<TokenReply> {
  try {
    return await answer(request)
  } catch (error) {
    if (error instanceof TokenError) return { kind: error.kind, text: error.message }
    return { kind: 'away', text: 'the process of the token failed' }
  }
}

// Our process ended this one, or ended itself: the token is told, as far as it still listens.
process.once('disconnect', () => {
  session?.close()
  process.exit()
})
process.on('message', async (request: TokenRequest) => {
  const replied = await reply(request)
  process.send?.(replied)
  // It was copied when it was sent.
  if ('bytes' in replied) replied.bytes.fill(0)
})
