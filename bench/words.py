"""The built-in vocabulary of the generated vaults: topics, common words and syllables for names."""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Topic:
    """One subject: `key` names its tag and, with `label_zh`, its rooms; words stand by falling frequency."""

    key: str
    label_zh: str
    english: tuple[str, ...]
    chinese: tuple[str, ...]


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _topic(key: str, label_zh: str, english: str, chinese: str) -> Topic:
    return Topic(key, label_zh, _words(english), _words(chinese))


TOPICS = (
    _topic(
        "Bread", "面包",
        "dough flour oven levain crust crumb starter rye salt hydration fold proof banneton scoring steam bake loaf spelt "
        "autolyse gluten mixer bassinage retard couche peel malt wholemeal blister rise sourness",
        "面团 面粉 烤箱 酵种 外皮 发酵 黑麦 盐 水量 折叠 割口 蒸汽 烘焙 麦芽 全麦 筋度 气孔 酸味",
    ),
    _topic(
        "Garden", "菜园",
        "bed soil compost seedling mulch tomato bean slug frost watering pruning trellis rotation squash leek cover nitrogen "
        "greenhouse sowing harvest thyme root drainage weeding hedge tuber graft pollen trowel netting",
        "菜畦 土壤 堆肥 幼苗 覆盖 番茄 豆角 蛞蝓 霜冻 浇水 修剪 棚架 轮作 南瓜 韭葱 温室 播种 收成",
    ),
    _topic(
        "Robotics", "机器人",
        "motor sensor wheel encoder battery firmware torque gearbox lidar chassis servo odometry controller gripper camera "
        "calibration watchdog voltage bumper planner drift kinematics loop latency bearing harness fuse standoff tether gait",
        "电机 传感器 轮子 编码器 电池 固件 扭矩 减速箱 底盘 舵机 里程计 控制器 夹爪 相机 标定 电压 路径 延迟",
    ),
    _topic(
        "Bicycles", "自行车",
        "frame chain wheel brake hub spoke saddle gear tyre rim derailleur cassette crank pedal bottom bracket fork headset "
        "lever cable pannier tube sealant torque lacing axle freewheel cadence steel mudguard",
        "车架 链条 刹车 花鼓 辐条 坐垫 变速 轮胎 轮圈 曲柄 脚踏 中轴 前叉 车把 线管 货架 内胎 飞轮",
    ),
    _topic(
        "Radio", "电台",
        "antenna band signal noise dipole receiver transmitter morse propagation coax balun impedance tuner ground carrier "
        "sideband beacon repeater contest callsign meteor filter mixer oscillator ferrite sunspot skip key log squelch",
        "天线 波段 信号 噪声 偶极 接收机 发射机 电码 传播 馈线 阻抗 天调 接地 载波 边带 信标 中继 呼号",
    ),
    _topic(
        "Astronomy", "天文",
        "telescope star mirror planet eyepiece nebula mount galaxy seeing orbit comet magnitude eclipse filter aperture "
        "cluster transit spectrum crater moon zenith meridian collimation guide exposure double parallax limb halo finder",
        "望远镜 恒星 镜面 行星 目镜 星云 赤道仪 星系 视宁度 轨道 彗星 星等 日食 口径 星团 凌日 光谱 环形山",
    ),
    _topic(
        "Birds", "观鸟",
        "nest wing song feather migration heron warbler owl flock marsh census binoculars ring egg swift plumage hide reed "
        "raptor lapwing moult roost curlew chick thermal bill perch wader kestrel estuary",
        "鸟巢 翅膀 鸣声 羽毛 迁徙 苍鹭 莺 猫头鹰 鸟群 湿地 调查 环志 鸟卵 雨燕 芦苇 猛禽 换羽 栖枝",
    ),
    _topic(
        "Sailing", "帆船",
        "sail mast keel tide anchor wind rudder hull jib halyard harbour chart buoy reef sheet tiller current mooring winch "
        "cleat leeward spinnaker bilge tack gybe swell fender pilot log knot",
        "船帆 桅杆 龙骨 潮汐 船锚 风向 船舵 船体 前帆 升帆索 港口 海图 浮标 缩帆 水流 系泊 绞盘 涌浪",
    ),
    _topic(
        "Cheese", "奶酪",
        "curd rennet milk whey rind cellar culture brine mould press ageing goat cave washed bloom acidity cloth humidity wheel "
        "casein lactic vat draining turning cheddar tomme ladle ash paste affinage",
        "凝乳 凝乳酶 牛奶 乳清 外皮 酒窖 菌种 盐水 霉菌 压制 熟成 山羊 酸度 湿度 沥水 翻面 轮状 灰层",
    ),
    _topic(
        "Pottery", "陶艺",
        "clay glaze kiln wheel bowl firing slip bisque ash celadon trimming cone handle wedging shino porcelain crackle throwing "
        "shrinkage sieve oxide reduction foot lid stoneware temper shard cobalt feldspar spout",
        "陶泥 釉料 窑炉 拉坯 碗 烧成 泥浆 素烧 草木灰 青瓷 修坯 揉泥 瓷土 开片 收缩 还原 炻器 长石",
    ),
    _topic(
        "Databases", "数据库",
        "index query table row transaction lock schema page log replica join checkpoint cache shard vacuum planner cursor "
        "constraint key snapshot isolation backup migration latch partition trigger view deadlock tuple segment",
        "索引 查询 数据表 事务 锁 模式 页面 日志 副本 连接 检查点 缓存 分片 计划器 约束 快照 隔离 备份",
    ),
    _topic(
        "Networks", "网络",
        "packet router switch address port latency tunnel firewall subnet route gateway resolver handshake certificate peer "
        "socket congestion window frame bridge proxy jitter fibre beacon timeout relay broadcast hop checksum lease",
        "数据包 路由器 交换机 地址 端口 延迟 隧道 防火墙 子网 网关 解析 握手 证书 套接字 拥塞 网桥 代理 抖动",
    ),
    _topic(
        "Chess", "棋艺",
        "pawn king knight bishop rook queen opening endgame tempo gambit file diagonal mate check castle sacrifice zugzwang "
        "centre tactic clock draw pin fork rank variation study blunder outpost exchange resign",
        "兵 国王 骑士 主教 战车 皇后 开局 残局 节奏 弃兵 斜线 将杀 易位 中心 战术 棋钟 和棋 变例",
    ),
    _topic(
        "Maps", "地图",
        "contour scale survey projection grid bearing datum legend relief compass ridge parcel meridian benchmark gazetteer tile "
        "layer boundary stream sheet triangulation spot hachure inset azimuth cadastre graticule plumb trig level",
        "等高线 比例尺 测量 投影 网格 方位 基准面 图例 地形 罗盘 山脊 地块 子午线 水准点 图层 边界 溪流 图幅",
    ),
    _topic(
        "Photography", "摄影",
        "lens film light shutter exposure grain print focus darkroom tripod negative developer contrast aperture enlarger "
        "portrait paper fixer tone bellows flash rangefinder frame scan stop meter zone emulsion contact sepia",
        "镜头 胶片 光线 快门 曝光 颗粒 相纸 对焦 暗房 三脚架 底片 显影 反差 光圈 人像 定影 影调 闪光",
    ),
    _topic(
        "Weather", "天气",
        "rain wind pressure cloud front gauge storm humidity frost barometer forecast gust dew drought thermometer squall ridge "
        "snow fog inversion station lightning hail anemometer trough sleet visibility isobar mast monsoon",
        "降雨 风速 气压 云层 锋面 雨量计 风暴 湿度 霜 预报 阵风 露水 干旱 温度计 降雪 雾 逆温 闪电",
    ),
    _topic(
        "Music", "音乐",
        "chord melody string tempo scale bow rhythm tuning reed key harmony fiddle bass drum score reel cadence fret valve "
        "rehearsal tenor pitch octave choir mute coda rosin bellows ornament metronome",
        "和弦 旋律 琴弦 速度 音阶 琴弓 节拍 调音 簧片 和声 提琴 低音 鼓 乐谱 排练 音高 八度 合唱",
    ),
    _topic(
        "Painting", "绘画",
        "brush canvas pigment wash oil colour varnish sketch ochre linseed easel primer glaze shadow watercolour gesso palette "
        "ultramarine charcoal ground umber stretcher impasto tint edge medium drawing ink study turpentine",
        "画笔 画布 颜料 薄涂 油彩 色彩 上光油 速写 赭石 画架 底料 阴影 水彩 调色板 群青 炭笔 墨 习作",
    ),
    _topic(
        "Taxes", "税务",
        "invoice receipt deduction account return deadline expense ledger rate quarter depreciation audit refund payroll form "
        "allowance balance mileage threshold accrual voucher creditor statement stamp levy rebate surcharge asset lease fee",
        "发票 收据 抵扣 账户 申报 期限 费用 账簿 税率 季度 折旧 审计 退税 工资 表格 余额 起征点 资产",
    ),
    _topic(
        "Health", "健康",
        "sleep dose knee doctor pulse vitamin stretch allergy pressure clinic exercise iron back vaccine diet tendon fever scan "
        "appetite posture dentist insulin rest bruise therapy breath fatigue migraine sprain lens",
        "睡眠 剂量 膝盖 医生 脉搏 维生素 拉伸 过敏 血压 诊所 锻炼 背部 疫苗 饮食 肌腱 发烧 姿势 牙医",
    ),
    _topic(
        "Travel", "旅行",
        "train ticket hostel ferry border map valley market museum pass luggage visa pier trail station platform guide cabin "
        "timetable harbour currency monastery bridge sleeper customs passport tram lake summit coast",
        "火车 车票 旅馆 渡轮 边境 山谷 集市 博物馆 行李 签证 码头 步道 车站 月台 时刻表 寺院 护照 湖边",
    ),
    _topic(
        "Tea", "茶",
        "leaf oolong pot water steep kettle roast cup aroma harvest gaiwan withering bitter green infusion puer cake tin spring "
        "jasmine tasting bud rinse cellar caddy whisk terroir smoke liquor oxidation",
        "茶叶 乌龙 茶壶 泉水 冲泡 炭焙 杯子 香气 采摘 盖碗 萎凋 苦味 绿茶 普洱 茶饼 茉莉 品鉴 回甘",
    ),
    _topic(
        "Trains", "铁路",
        "track signal locomotive points carriage gauge boiler sleeper timetable junction tunnel brake coupling yard platform "
        "axle bogie viaduct shunter ballast turntable whistle cab depot siding gradient pantograph tender fireman level",
        "轨道 信号 机车 道岔 车厢 轨距 锅炉 枕木 时刻 枢纽 隧道 制动 车钩 编组场 转向架 高架桥 道砟 坡度",
    ),
    _topic(
        "Weaving", "织造",
        "loom warp weft wool yarn shuttle heddle twill pattern dye spindle linen selvedge reed treadle bobbin indigo fleece carding "
        "madder tension plain felt skein mordant draft tapestry fringe cotton knot",
        "织机 经线 纬线 羊毛 纱线 梭子 综丝 斜纹 图案 染料 纺锤 亚麻 布边 踏板 靛蓝 梳毛 茜草 毛毡",
    ),
)  # fmt: skip

COMMON_ENGLISH = _words(
    "the of and to a in was it for on with is that as at by this not we from but after before when which had one be or an "
    "so then too more than only still two first last each some again three same next small old new long good little slow "
    "early late dry warm cold half second right left whole day week month morning evening hour minute time way part end "
    "place hand side note list number kind reason problem change result try check start stop keep make take leave turn "
    "hold write read ask need seem look work find learn measure compare replace repeat wait clean move open close "
    "between under over near without against across until because almost often never once already twice about"
)
COMMON_CHINESE = _words(
    "的 了 在 是 我 和 也 就 不 有 要 这 把 一 到 会 又 再 先 后来 今天 昨天 早上 晚上 每次 一些 因为 所以 但是 如果 "
    "还是 已经 开始 结束 需要 可以 应该 觉得 发现 记录 检查 比较 改变 问题 原因 结果 时间 地方 方法 部分 左边 右边 "
    "小 大 新 旧 慢 快 干 冷 热 重新 几乎 经常 从来 两次 三天 一周 半小时"
)
HEADINGS_ENGLISH = (
    "What happened", "Notes", "Next time", "Background", "Measurements", "Open questions", "Sources", "What to buy", "Log",
    "Why it failed", "Plan", "Summary", "People to ask", "Costs", "Settings that worked", "Before the weekend",
)  # fmt: skip
HEADINGS_CHINESE = (
    "经过", "笔记", "下次", "背景", "数据", "待解决", "来源", "要买的东西", "日志", "失败原因", "计划", "小结", "要问的人", "花费",
)  # fmt: skip

# A name is one of each: 40 x 40 x 40 names. Title names and the names in facts end differently, so they never meet.
ONSETS = _words(
    "Bar Bel Bran Cal Cor Dal Den Dun Ebb Elm Fal Fen Gar Gil Hal Har Hol Ive Jas Kel "
    "Lan Lor Mar Mel Mor Nar Nel Orr Pel Pen Quill Ral Ros Sal Sel Tar Tol Ul Var Wen"
)
MIDDLES = _words(
    "a am an ar as e el em en er es i il im in ir is o ol om on or os u ul um un ur us y ab ad ag ib id ig ob od og ub"
)
PLACE_ENDINGS = _words(  # no "ridge": "Al-a-bridge" and "Al-ab-ridge" would be one name
    "beck bourne bridge by chester combe cote cross dale den don fell field ford gate ham haven head holme hurst "
    "ley lea low mere mouth ness port shaw stead stow thorpe toft ton wade wick wold worth yarm"
)
PERSON_ENDINGS = _words(
    "akis aldo ander andi anov ari aski atti baum berg brandt dottir eiro elli enko erson escu etti ezza hagen "
    "hoven iano ides idze ikov illo ing ini ino inski kainen mann nen off olo oni ovic quist sen stein ucci"
)
CHINESE_FIRST = "青白清云石松竹梅兰溪山江湖海长安永和平远东南西北金玉龙凤鹤鹿雁柳桃杏槐枫荷莲茶泉古新春秋霜雪晴星"
CHINESE_SECOND = "岚川溪谷坪洲岭峰湾渡桥亭台塘堤浦泽潭泉井林园坡坞岩崖洞口关营庄屯寨堡集店铺坊巷里屿岛滩汀港渚陂垄"
CHINESE_PLACE = "村镇乡县街路坊里庄寨堡关口桥渡津港湾岛洲滩山岭峰谷坪坡崖洞泉溪江河湖塘潭井园林苑亭台楼阁院寺观"
CHINESE_PERSON = "明华英志强芳敏静丽娟霞伟勇军杰涛超鹏辉斌波宁刚健俊帆雯琪琳瑶婷颖欣怡悦萱涵彤曼蕾薇莹璐珊珍琼瑾"
_STEP = 1_000_003  # a prime that divides no size of the name tables: i * _STEP visits every name once


def _name(index: int, *tables: Sequence[str]) -> str:
    """The `index`-th name: all different, in scattered order; past the last one they get a number."""
    total = math.prod(len(table) for table in tables)
    rest = index * _STEP % total
    parts = []
    for table in tables:
        rest, place = divmod(rest, len(table))
        parts.append(table[place])
    return "".join(parts) + (f"-{index // total + 1}" if index >= total else "")


def place(index: int) -> str:
    """A place's name, for titles."""
    return _name(index, ONSETS, MIDDLES, PLACE_ENDINGS)


def person(index: int) -> str:
    """A person's name, for facts."""
    return _name(index, ONSETS, MIDDLES, PERSON_ENDINGS)


def place_chinese(index: int) -> str:
    """A place's name in Chinese."""
    return _name(index, CHINESE_FIRST, CHINESE_SECOND, CHINESE_PLACE)


def person_chinese(index: int) -> str:
    """A person's name in Chinese."""
    return _name(index, CHINESE_FIRST, CHINESE_PERSON, CHINESE_PERSON)
