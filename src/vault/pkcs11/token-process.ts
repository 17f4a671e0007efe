// The process that uses a token for one process of tokenmill, forked by token-client.ts. A module is code of the
// token's maker that blocks while it waits, keeps its state for the life of a process, and may crash: in this process
// it holds up no other work, and can be killed.
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

// The parent process ended this child, or has itself ended: log out of the token, if the token still answers.
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
