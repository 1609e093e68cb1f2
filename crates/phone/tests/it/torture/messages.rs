//! The messages of RFC 4475 in our own words: each has the trait that its section describes. Lines end in CR LF on the wire; `{from}` is
//! the address of the sender, `{id}` is different each time.

use super::Then::{self, Answer, Missed, NotWelcome, Nothing, Tolerated};

/// Section and name, the message, what becomes of it.
pub type Torture = (&'static str, &'static str, Then);

pub const TORTURES: &[Torture] = &[
    // 3.1.1: valid messages.
    (
        "3.1.1.1 white space everywhere",
        "INVITE sip:vivek@host.example;unknownparam SIP/2.0\nTO :\n sip:vivek@host.example ;   tag    = 1918181833n\nfrom   : \"J Rosenberg \\\\\\\"\"       <sip:jdr@example.com>\n  ;\n  tag = 98asjd8\nMaX-fOrWaRdS: 0068\nCall-ID: wsinv.{id}@192.0.2.1\nContent-Length   : 0\ncseq: 0009\n  INVITE\nVia  : SIP  /   2.0\n /UDP\n    {from};branch=z9hG4bK{id}\ns :\nNewFangledHeader:   newfangled value\n continued newfangled value\nUnknownHeaderWithUnusualValue: ;;,,;;,;\nRoute:\n <sip:services.example.com;lr;unknownwith=value;unknown-no-value>\nv:  SIP  / 2.0  / TCP     spindle.example.com   ;\n  branch  =   z9hG4bK9ikj8  ,\n SIP  /    2.0   / UDP  192.168.255.111   ; branch=\n z9hG4bK30239\nm:\"Quoted string \\\"\\\"\" <sip:jdr@example.com> ; newparam =\n      newvalue ;\n  secondparam ; q = 0.33\n\n",
        // The library: it does not read white space inside the protocol of a Via.
        Missed,
    ),
    (
        "3.1.1.2 every letter that is allowed",
        "!interesting-Method0123456789_*+`.%indeed'~ sip:1_unusual.URI~(to-be!sure)&isn't+it$/crazy?,/;;*:&it+has=1,weird!*pas$wo~d_too.(doesn't-it)@example.com SIP/2.0\nVia: SIP/2.0/UDP {from};branch=z9hG4bK-.!%66*_+`'~{id}\nTo: \"BEL:\\\x07 NUL:\\\x01 DEL:\\\x7f\" <sip:1_unusual.URI~(to-be!sure)&isn't+it$/crazy?,/;;*@example.com>\nFrom: token1~` token2'+_ token3*%!.- <sip:mundane@example.com> ;fromParam''~+*_!.-%=\"\u{440}\u{430}\u{431}\";tag=_token~1'+`*%!-.\nCall-ID: intmeth.word%ZK-!.*_+'@word`~)(><:\\/\"][?}{{id}\nCSeq: 139122385 !interesting-Method0123456789_*+`.%indeed'~\nMax-Forwards: 255\nextensionHeader-!.%*+_`'~:\u{feff}\u{5927}\u{505c}\u{96fb}\nContent-Length: 0\n\n",
        // The library: it knows the methods of RFCs only.
        Missed,
    ),
    (
        "3.1.1.3 escapes in the right places",
        "INVITE sip:sips%3Auser%40example.com@example.net SIP/2.0\nTo: sip:%75se%72@example.com\nFrom: <sip:I%20have%20spaces@example.net>;tag=938\nMax-Forwards: 87\ni: esc01.{id}\nCSeq: 234234 INVITE\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nC: application/sdp\nContact: <sip:cal%6Cer@host5.example.net;%6C%72;n%61me=v%61lue%25%34%31>\nContent-Length: 0\n\n",
        Answer(&[403]),
    ),
    (
        "3.1.1.4 escaped nulls",
        "REGISTER sip:example.com SIP/2.0\nTo: sip:null-%00-null@example.com\nFrom: sip:null-%00-null@example.com;tag=839923423\nMax-Forwards: 70\nCall-ID: escnull.{id}\nCSeq: 14398234 REGISTER\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nContact: <sip:%00@host5.example.com>\nContact: <sip:%00%00@host5.example.com>\nL:0\n\n",
        Answer(&[405]),
    ),
    (
        "3.1.1.5 a percent sign that escapes nothing",
        "RE%47IST%45R sip:registrar.example.com SIP/2.0\nTo: \"%Z%45\" <sip:resource@example.com>\nFrom: \"%Z%45\" <sip:resource@example.com>;tag=f232jadfj23\nCall-ID: esc02.{id}\nCSeq: 29344 RE%47IST%45R\nMax-Forwards: 70\nVia: SIP/2.0/UDP {from};rport;branch=z9hG4bK{id}\nContact: <sip:alias1@host1.example.com>\nContent-Length: 0\n\n",
        // The library: it knows the methods of RFCs only.
        Missed,
    ),
    (
        "3.1.1.6 no space before the bracket",
        "OPTIONS sip:user@example.com SIP/2.0\nTo: sip:user@example.com\nFrom: caller<sip:caller@example.com>;tag=323\nMax-Forwards: 70\nCall-ID: lwsdisp.{id}\nCSeq: 60 OPTIONS\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nl: 0\n\n",
        Answer(&[200]),
    ),
    (
        "3.1.1.7 long values",
        "INVITE sip:user@example.com SIP/2.0\nTo: \"{long}\"<sip:user@example.com:6000;unknownparam1={long};longparam{long}=shortvalue;very{long}ParameterNameWithNoValue>\nF: sip:{long}@example.net;tag=12982{long}424;unknownheaderparamname{long}=unknowheaderparamvalue{long};unknownValuelessparamname{long}\nCall-ID: longreq.one{long}{id}\nCSeq: 3882340 INVITE\nUnknown-{long}-Name: unknown-{long}-value; unknown-{long}-parameter-name = unknown-{long}-parameter-value\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nVia: SIP/2.0/TCP sip33.example.com;branch=z9hG4bK{long}\nVia: SIP/2.0/TCP sip32.example.com;branch=z9hG4bK{long}\nMax-Forwards: 70\nContact: <sip:{long}@host5.example.net>\nContent-Type: application/sdp\nl: 0\n\n",
        Answer(&[403]),
    ),
    (
        "3.1.1.8 more in the packet than the message",
        "REGISTER sip:example.com SIP/2.0\nTo: sip:j.user@example.com\nFrom: sip:j.user@example.com;tag=43251j3j324\nMax-Forwards: 8\nI: dblreq.{id}\nContact: sip:j.user@host.example.com\nCSeq: 8 REGISTER\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nContent-Length: 0\n\n\nINVITE sip:joe@example.com SIP/2.0\nt: sip:joe@example.com\nFrom: sip:caller@example.net;tag=141334\nMax-Forwards: 8\nCall-ID: dblreq.other{id}\nCSeq: 8 INVITE\nVia: SIP/2.0/UDP {from};branch=z9hG4bKother{id}\nContent-Length: 0\n\n",
        Answer(&[405]),
    ),
    (
        "3.1.1.9 semicolons in the user part",
        "OPTIONS sip:user;par=u%40example.net@example.com SIP/2.0\nTo: sip:j_user@example.com\nFrom: sip:caller@example.org;tag=33242\nMax-Forwards: 3\nCall-ID: semiuri.{id}\nCSeq: 8 OPTIONS\nAccept: application/sdp, application/pkcs7-mime, multipart/mixed, multipart/signed, message/sip, message/sipfrag\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nl: 0\n\n",
        Answer(&[200]),
    ),
    (
        "3.1.1.10 transports that nobody knows",
        "OPTIONS sip:user@example.com SIP/2.0\nTo: sip:user@example.com\nFrom: <sip:caller@example.com>;tag=323\nMax-Forwards: 70\nCall-ID: transports.{id}\nCSeq: 60 OPTIONS\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nVia: SIP/2.0/SCTP t2.example.com;branch=z9hG4bKklasjdhf\nVia: SIP/2.0/TLS t3.example.com;branch=z9hG4bK2980unddj\nVia: SIP/2.0/UNKNOWN t4.example.com;branch=z9hG4bKasd0f3en\nVia: SIP/2.0/TCP t5.example.com;branch=z9hG4bK0a9idfnee\nl: 0\n\n",
        Answer(&[200]),
    ),
    (
        "3.1.1.11 a body of several parts, one of them binary",
        "MESSAGE sip:kumiko@example.org SIP/2.0\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nMax-Forwards: 70\nRoute: <sip:127.0.0.1:5080>\nIdentity: r5mwreLuyDRYBi/0TiPwEsY3rEVsk/G2WxhgTV1PF7hHuLIK0YWVKZhKv9Mj8UeXqkMVbnVq37CD+813gvYjcBUaZngQmXc9WNZSDNGCzA==\nFrom: <sip:fluffy@example.com>;tag=2fb0dcc9\nTo: <sip:kumiko@example.org>\nCall-ID: mpart01.{id}\nCSeq: 1 MESSAGE\nContent-Type: multipart/mixed;boundary=7a9cbec02ceef655\nContent-Length: {length}\n\n--7a9cbec02ceef655\nContent-Type: text/plain\n\nHello\n--7a9cbec02ceef655\nContent-Type: application/octet-stream\nContent-Transfer-Encoding: binary\n\n{binary}\n--7a9cbec02ceef655--\n",
        Answer(&[405]),
    ),
    (
        "3.1.1.12 an unusual reason phrase",
        "SIP/2.0 200 = 2**3 * 5**2 \u{43d}\u{43e} \u{441}\u{442}\u{43e} \u{434}\u{435}\u{432}\u{44f}\u{43d}\u{43e}\u{441}\u{442}\u{43e} \u{434}\u{435}\u{432}\u{44f}\u{442}\u{44c} - \u{43f}\u{440}\u{43e}\u{441}\u{442}\u{43e}\u{435}\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nCall-ID: unreason.{id}\nCSeq: 35 INVITE\nFrom: sip:user@example.com;tag=11141343\nTo: sip:user@example.edu;tag=2229\nContent-Length: 0\nContact: <sip:user@host198.example.com>\n\n",
        Nothing,
    ),
    (
        "3.1.1.13 no reason phrase",
        "SIP/2.0 100 \nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nCall-ID: noreason.{id}\nCSeq: 35 INVITE\nFrom: <sip:user@example.com>;tag=39ansfi3\nTo: <sip:user@example.edu>;tag=902jndnke3\nContent-Length: 0\nContact: <sip:user@host105.example.com>\n\n",
        Nothing,
    ),
    // 3.1.2: invalid messages.
    (
        "3.1.2.1 separators with nothing between them",
        "INVITE sip:user@example.com SIP/2.0\nTo: sip:j.user@example.com\nFrom: sip:caller@example.net;tag=134161461246\nMax-Forwards: 7\nCall-ID: badinv01.{id}\nCSeq: 8 INVITE\nVia: SIP/2.0/UDP {from};;,;,,\nContact: \"Joe\" <sip:joe@example.org>;;;;\nContent-Length: 0\n\n",
        NotWelcome,
    ),
    (
        "3.1.2.2 a length that is too large",
        "INVITE sip:user@example.com SIP/2.0\nMax-Forwards: 80\nTo: sip:j.user@example.com\nFrom: sip:caller@example.net;tag=93942939o2\nContact: <sip:caller@hungry.example.net>\nCall-ID: clerr.{id}\nCSeq: 8 INVITE\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nContent-Type: application/sdp\nContent-Length: 9999\n\nv=0\no=mhandley 29739 7272939 IN IP4 192.0.2.155\ns=-\nc=IN IP4 192.0.2.155\nt=0 0\nm=audio 49217 RTP/AVP 0 12\n",
        NotWelcome,
    ),
    (
        "3.1.2.3 a negative length",
        "INVITE sip:user@example.com SIP/2.0\nMax-Forwards: 254\nTo: sip:j.user@example.com\nFrom: sip:caller@example.net;tag=32394234\nCall-ID: ncl.{id}\nCSeq: 8 INVITE\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nContact: <sip:caller@hungry.example.net>\nContent-Type: application/sdp\nContent-Length: -999\n\nv=0\n",
        NotWelcome,
    ),
    (
        "3.1.2.4 numbers that are too large",
        "REGISTER sip:example.com SIP/2.0\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nTo: <sip:user@example.com>\nFrom: <sip:user@example.com>;tag=239232jh3\nCSeq: 36893488147419103232 REGISTER\nCall-ID: scalar02.{id}\nMax-Forwards: 300\nExpires: 10000000000000000000000000000000000\nContact: <sip:user@host129.example.com>;expires=280297596632815\nContent-Length: 0\n\n",
        NotWelcome,
    ),
    (
        "3.1.2.5 numbers of a response that are too large",
        "SIP/2.0 503 Service Unavailable\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nTo: <sip:user@example.com>;tag=239232jh3\nFrom: <sip:user@example.com>;tag=23923\nCSeq: 9292394834772304023312 OPTIONS\nCall-ID: scalarlg.{id}\nRetry-After: 949302838503028349304023988\nWarning: 1812 overture \"In Progress\"\nContent-Length: 0\n\n",
        Nothing,
    ),
    (
        "3.1.2.6 a quotation without an end",
        "INVITE sip:user@example.com SIP/2.0\nTo: \"Mr. J. User <sip:j.user@example.com>\nFrom: sip:caller@example.net;tag=93334\nMax-Forwards: 10\nCall-ID: quotbal.{id}\nContact: <sip:caller@host59.example.net>\nCSeq: 8 INVITE\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nContent-Length: 0\n\n",
        NotWelcome,
    ),
    (
        "3.1.2.7 brackets around the request's address",
        "INVITE <sip:user@example.com> SIP/2.0\nTo: sip:user@example.com\nFrom: sip:caller@example.net;tag=39291\nMax-Forwards: 23\nCall-ID: ltgtruri.{id}\nCSeq: 1 INVITE\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nContact: <sip:caller@host5.example.net>\nContent-Length: 0\n\n",
        NotWelcome,
    ),
    (
        "3.1.2.8 a space in the request's address",
        "INVITE sip:user@example.com; lr SIP/2.0\nTo: sip:user@example.com\nFrom: sip:caller@example.net;tag=3xfe-9921883-z9f\nMax-Forwards: 231\nCall-ID: lwsruri.{id}\nCSeq: 2130706432 INVITE\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nContact: <sip:caller@host1.example.net>\nContent-Length: 0\n\n",
        NotWelcome,
    ),
    (
        "3.1.2.9 two spaces in the first line",
        "INVITE  sip:user@example.com  SIP/2.0\nMax-Forwards: 8\nTo: sip:user@example.com\nFrom: sip:caller@example.net;tag=8814\nCall-ID: lwsstart.{id}\nCSeq: 1893884 INVITE\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nContact: <sip:caller@host1.example.net>\nContent-Length: 0\n\n",
        NotWelcome,
    ),
    (
        "3.1.2.10 spaces at the end of the first line",
        "OPTIONS sip:remote-target@example.com SIP/2.0  \nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nTo: <sip:remote-target@example.com>\nFrom: <sip:local-resource@example.com>;tag=329429089\nCall-ID: trws.{id}\nMax-Forwards: 70\nCSeq: 238923 OPTIONS\nContent-Length: 0\n\n",
        Tolerated,
    ),
    (
        "3.1.2.11 escaped headers in the request's address",
        "INVITE sip:user@example.com?Route=%3Csip:example.com%3E SIP/2.0\nTo: sip:user@example.com\nFrom: sip:caller@example.net;tag=341518\nMax-Forwards: 7\nContact: <sip:caller@host39923.example.net>\nCall-ID: escruri.{id}\nCSeq: 149209342 INVITE\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nContent-Length: 0\n\n",
        NotWelcome,
    ),
    (
        "3.1.2.12 a wrong time zone",
        "INVITE sip:user@example.com SIP/2.0\nTo: sip:user@example.com\nFrom: sip:caller@example.net;tag=2234923\nMax-Forwards: 70\nCall-ID: baddate.{id}\nCSeq: 1392934 INVITE\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nDate: Fri, 01 Jan 2010 16:00:00 EST\nContact: <sip:caller@host5.example.net>\nContent-Length: 0\n\n",
        NotWelcome,
    ),
    (
        "3.1.2.13 a contact without brackets",
        "REGISTER sip:example.com SIP/2.0\nTo: sip:user@example.com\nFrom: sip:user@example.com;tag=998332\nMax-Forwards: 70\nCall-ID: regbadct.{id}\nCSeq: 1 REGISTER\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nContact: sip:user@example.com?Route=%3Csip:sip.example.com%3E\nl: 0\n\n",
        NotWelcome,
    ),
    (
        "3.1.2.14 spaces in an address",
        "OPTIONS sip:user@example.org SIP/2.0\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nMax-Forwards: 70\nFrom: \"Bell, Alexander\" <sip:a.g.bell@example.com>;tag=433423\nTo: \"Watson, Thomas\" < sip:t.watson@example.org >\nCall-ID: badaspec.{id}\nCSeq: 3923423 OPTIONS\nContent-Length: 0\n\n",
        Tolerated,
    ),
    (
        "3.1.2.15 a comma in a display name",
        "OPTIONS sip:t.watson@example.org SIP/2.0\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nMax-Forwards: 70\nFrom: Bell, Alexander <sip:a.g.bell@example.com>;tag=43\nTo: Watson, Thomas <sip:t.watson@example.org>\nCall-ID: baddn.{id}\nCSeq: 31417 OPTIONS\nContent-Length: 0\n\n",
        Tolerated,
    ),
    (
        "3.1.2.16 a version that nobody knows",
        "OPTIONS sip:t.watson@example.org SIP/7.0\nVia: SIP/7.0/UDP {from};branch=z9hG4bK{id}\nMax-Forwards: 70\nFrom: A. Bell <sip:a.g.bell@example.com>;tag=qweoiqpe\nTo: T. Watson <sip:t.watson@example.org>\nCall-ID: badvers.{id}\nCSeq: 1 OPTIONS\nl: 0\n\n",
        NotWelcome,
    ),
    (
        "3.1.2.17 two different methods",
        "OPTIONS sip:user@example.com SIP/2.0\nTo: sip:j.user@example.com\nFrom: sip:caller@example.net;tag=34525\nMax-Forwards: 6\nCall-ID: mismatch01.{id}\nCSeq: 8 INVITE\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nl: 0\n\n",
        NotWelcome,
    ),
    (
        "3.1.2.18 two different methods, one of them unknown",
        "NEWMETHOD sip:user@example.com SIP/2.0\nTo: sip:j.user@example.com\nFrom: sip:caller@example.net;tag=34525\nMax-Forwards: 6\nCall-ID: mismatch02.{id}\nCSeq: 8 INVITE\nContact: <sip:caller@host.example.net>\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nContent-Length: 0\n\n",
        NotWelcome,
    ),
    (
        "3.1.2.19 a response code that is too large",
        "SIP/2.0 4294967301 better not break the receiver\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nCall-ID: bigcode.{id}\nCSeq: 353494 INVITE\nFrom: <sip:user@example.com>;tag=39ansfi3\nTo: <sip:user@example.edu>;tag=902jndnke3\nContent-Length: 0\nContact: <sip:user@host105.example.com>\n\n",
        Nothing,
    ),
    // 3.2: the transaction layer.
    (
        "3.2.1 a branch with nothing in it",
        "OPTIONS sip:user@example.com SIP/2.0\nTo: sip:user@example.com\nFrom: sip:caller@example.org;tag=33242\nMax-Forwards: 3\nVia: SIP/2.0/UDP {from};branch=z9hG4bK\nAccept: application/sdp\nCall-ID: badbranch.{id}\nCSeq: 8 OPTIONS\nl: 0\n\n",
        Answer(&[200]),
    ),
    // 3.3: the application layer.
    (
        "3.3.1 no Call-ID, no From and no To",
        "INVITE sip:user@example.com SIP/2.0\nCSeq: 193942 INVITE\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nContent-Type: application/sdp\nl: 0\n\n",
        NotWelcome,
    ),
    (
        "3.3.2 an address of a kind that nobody knows",
        "OPTIONS nobodyKnowsThisScheme:totallyopaquecontent SIP/2.0\nTo: sip:user@example.com\nFrom: sip:caller@example.net;tag=384\nMax-Forwards: 3\nCall-ID: unkscm.{id}\nCSeq: 3923423 OPTIONS\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nContent-Length: 0\n\n",
        Tolerated,
    ),
    (
        "3.3.3 an address of a kind that is not for this",
        "OPTIONS soap.beep://192.0.2.103:3002 SIP/2.0\nTo: sip:user@example.com\nFrom: sip:caller@example.net;tag=384\nMax-Forwards: 3\nCall-ID: novelsc.{id}\nCSeq: 3923423 OPTIONS\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nContent-Length: 0\n\n",
        Tolerated,
    ),
    (
        "3.3.4 headers with addresses of unknown kinds",
        "REGISTER sip:example.com SIP/2.0\nTo: isbn:2983792873\nFrom: <http://www.example.com>;tag=3234233\nCall-ID: unksm2.{id}\nCSeq: 234902 REGISTER\nMax-Forwards: 70\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nContact: <name:John_Smith>\nl: 0\n\n",
        NotWelcome,
    ),
    (
        "3.3.5 an extension that nobody knows is required",
        "OPTIONS sip:user@example.com SIP/2.0\nTo: sip:j_user@example.com\nFrom: sip:caller@example.net;tag=242etr\nMax-Forwards: 6\nCall-ID: bext01.{id}\nRequire: nothingSupportsThis, nothingSupportsThisEither\nProxy-Require: noProxiesSupportThis, norDoAnyProxiesSupportThis\nCSeq: 8 OPTIONS\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nContent-Length: 0\n\n",
        Answer(&[420]),
    ),
    (
        "3.3.6 a body of an unknown kind",
        "INVITE sip:user@example.com SIP/2.0\nContact: <sip:caller@host5.example.net>\nTo: sip:j.user@example.com\nFrom: sip:caller@example.net;tag=8392034\nMax-Forwards: 70\nCall-ID: invut.{id}\nCSeq: 235448 INVITE\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nContent-Type: application/unknownformat\nContent-Length: {length}\n\n<audio>\n <pcmu port=\"443\"/>\n</audio>\n",
        Answer(&[403, 415]),
    ),
    (
        "3.3.7 an authorization of an unknown kind",
        "REGISTER sip:example.com SIP/2.0\nTo: sip:j.user@example.com\nFrom: sip:j.user@example.com;tag=87321hj23128\nMax-Forwards: 8\nCall-ID: regaut01.{id}\nCSeq: 9338 REGISTER\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nAuthorization: NoOneKnowsThisScheme opaque-data=here\nContent-Length: 0\n\n",
        Answer(&[405]),
    ),
    (
        "3.3.8 several values where one is allowed",
        "INVITE sip:user@company.com SIP/2.0\nContact: <sip:caller@host25.example.net>\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nMax-Forwards: 70\nCSeq: 5 INVITE\nCall-ID: multi01.{id}\nCSeq: 59 INVITE\nCall-ID: multi01.other\nFrom: sip:caller@example.com;tag=3413415\nTo: sip:user@example.com\nTo: sip:other@example.net\nFrom: sip:caller@example.net;tag=2923420123\nContent-Type: application/sdp\nl: 0\nMax-Forwards: 5\n\n",
        NotWelcome,
    ),
    (
        "3.3.9 two lengths",
        "OPTIONS sip:user@example.com SIP/2.0\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nTo: sip:j.user@example.com\nFrom: sip:nobody@example.org;tag=3234233\nCall-ID: mcl01.{id}\nMax-Forwards: 15\nContent-Length: 13\nCSeq: 5 OPTIONS\nContent-Length: 5\nContent-Type: text/plain\n\nThere's no way to know how many octets are supposed to be here.\n",
        NotWelcome,
    ),
    (
        "3.3.10 an answer by way of everybody",
        "SIP/2.0 200 OK\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nVia: SIP/2.0/UDP 255.255.255.255;branch=z9hG4bK1saber23\nCall-ID: bcast.{id}\nCSeq: 35 INVITE\nFrom: sip:user@example.com;tag=11141343\nTo: sip:user@example.edu;tag=2229\nContent-Length: 0\nContact: <sip:user@host28.example.com>\n\n",
        Nothing,
    ),
    (
        "3.3.11 the last stop",
        "OPTIONS sip:user@example.com SIP/2.0\nTo: sip:user@example.com\nFrom: sip:caller@example.net;tag=3ghsd41\nCall-ID: zeromf.{id}\nCSeq: 39234321 OPTIONS\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nMax-Forwards: 0\nContent-Length: 0\n\n",
        Answer(&[200]),
    ),
    (
        "3.3.12 a contact with a parameter of the header",
        "REGISTER sip:example.com SIP/2.0\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nMax-Forwards: 70\nFrom: sip:watson@example.com;tag=DkfVgjkrtMwaerKKpe\nTo: sip:watson@example.com\nCall-ID: cparam01.{id}\nCSeq: 2 REGISTER\nContact: sip:+19725552222@gw1.example.net;unknownparam\nl: 0\n\n",
        Answer(&[405]),
    ),
    (
        "3.3.13 a contact with a parameter of the address",
        "REGISTER sip:example.com SIP/2.0\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nMax-Forwards: 70\nFrom: sip:watson@example.com;tag=838293\nTo: sip:watson@example.com\nCall-ID: cparam02.{id}\nCSeq: 3 REGISTER\nContact: <sip:+19725552222@gw1.example.net;unknownparam>\nl: 0\n\n",
        Answer(&[405]),
    ),
    (
        "3.3.14 a contact with an escaped header",
        "REGISTER sip:example.com SIP/2.0\nTo: sip:user@example.com\nFrom: sip:user@example.com;tag=8\nMax-Forwards: 70\nCall-ID: regescrt.{id}\nCSeq: 14398234 REGISTER\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nM: <sip:user@example.com?Route=%3Csip:sip.example.com%3E>\nL:0\n\n",
        Answer(&[405]),
    ),
    (
        "3.3.15 an answer is wanted that nobody can give",
        "INVITE sip:user@example.com SIP/2.0\nTo: sip:j_user@example.com\nContact: <sip:caller@host15.example.net>\nFrom: sip:caller@example.net;tag=234\nMax-Forwards: 5\nCall-ID: sdp01.{id}\nCSeq: 8 INVITE\nVia: SIP/2.0/UDP {from};branch=z9hG4bK{id}\nContent-Length: 0\nAccept: text/nobodyKnowsThis\n\n",
        Answer(&[403, 406]),
    ),
    // 3.4: before RFC 3261.
    (
        "3.4.1 the syntax of RFC 2543",
        "INVITE sip:UserB@example.com SIP/2.0\nVia: SIP/2.0/UDP {from}\nFrom: <sip:+13035551111@example.net;user=phone>\nTo: sip:+16505552222@example.net;user=phone\nCall-ID: inv2543.{id}\nCSeq: 2056 INVITE\nContact: <sip:UserA@127.0.0.1>\nContent-Length: 0\n\n",
        Tolerated,
    ),
];
