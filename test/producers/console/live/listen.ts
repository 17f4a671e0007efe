// Opens streams of live pages, as a browser does, and keeps what they say.
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { until } from '../../../support/until.ts'

export interface Message {
  at: string
  shape: string
  texts: Record<string, string>
  /** Keys of texts that are no more. */
  gone?: string[]
  isLast?: boolean
}

export interface Reading {
  status: number
  headers: IncomingMessage['headers']
  messages: Message[]
  /** When the last message came, by `performance.now()`; 0: none has. */
  heardAt: number
  /** The stream has ended. */
  isOver: boolean
  stop(): void
  response: IncomingMessage
}

export interface Listener {
  /** Opens a stream. `isRead: false`: its texts are not taken. */
  listen(cookie: string, options?: { isRead?: boolean; path?: string }): Promise<Reading>
  /** Ends all streams that were opened. */
  stop(): void
}

/** `origin`: of the console, at the time of each call. */
export function openListener(origin: () => string): Listener {
  const opened: ClientRequest[] = []
  return {
    listen(cookie, { isRead = true, path = '/now/live' } = {}) {
      const { port, host } = new URL(origin())
      return new Promise((resolve, reject) => {
        const asked = request({ host: 'localhost', port, path, headers: { host, cookie } })
        opened.push(asked)
        asked.on('error', reject)
        asked.on('response', response => {
          const reading: Reading = {
            status: response.statusCode ?? 0,
            headers: response.headers,
            messages: [],
            heardAt: 0,
            isOver: false,
            response,
            stop: () => asked.destroy(),
          }
          response.on('close', () => {
            reading.isOver = true
          })
          response.on('error', () => {})
          if (isRead) takeFrom(response, reading)
          asked.removeAllListeners('error')
          asked.on('error', () => {})
          resolve(reading)
        })
        asked.end()
      })
    },
    stop() {
      for (const one of opened.splice(0)) one.destroy()
    },
  }
}

function takeFrom(response: IncomingMessage, reading: Pick<Reading, 'messages' | 'heardAt'>): void {
  let text = ''
  response.on('data', chunk => {
    text += String(chunk)
    const parts = text.split('\n\n')
    text = parts.pop() ?? ''
    for (const part of parts) {
      if (!part.startsWith('data: ')) continue
      reading.messages.push(JSON.parse(part.slice(6)))
      reading.heardAt = performance.now()
    }
  })
}

/** The message of this number, from 1 on. */
export const heard = (reading: Reading, n: number) =>
  until(() => reading.messages.length >= n && reading.messages[n - 1], { what: `message ${n}` })
