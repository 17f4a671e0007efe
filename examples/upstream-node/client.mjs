// Opens the client that the programs here share: over the queues if REDIS_URL is set, else over HTTP.
import { connect, connectHttp } from 'tokenmill-client'

const { BASE_URL, CLIENT_FILE = 'client.json', REDIS_URL, TOKENMILL_PREFIX } = process.env

export function openHttp() {
  return connectHttp({ clientFile: CLIENT_FILE, ...(BASE_URL && { baseUrl: BASE_URL }) })
}

/** `replyTo`: the results queue of this program alone. */
export function open(replyTo) {
  if (!REDIS_URL) return openHttp()
  const prefix = TOKENMILL_PREFIX ? { prefix: TOKENMILL_PREFIX } : {}
  return connect({ redisUrl: REDIS_URL, clientFile: CLIENT_FILE, replyTo, ...prefix })
}
