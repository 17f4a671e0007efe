// What follows from the console's origin.
import { expect, it } from 'vitest'
import { siteOf } from '../../../producers/console/site.ts'

it.each(['https://console.example.com', 'HTTPS://console.example.com', 'https://Console.Example.com:443/'])(
  'is secure with https, however %s is written',
  origin => {
    expect(siteOf(origin)).toEqual({
      origin: 'https://console.example.com',
      rpId: 'console.example.com',
      host: 'console.example.com',
      isSecure: true,
      cookie: '__Host-tokenmill-console',
      displayCookie: '__Host-tokenmill-display',
    })
  },
)
